SELECT version, oldest_reader FROM (VALUES (1)) AS asked LEFT JOIN meta ON one
