SELECT
    (SELECT value FROM meta WHERE name = 'version') AS version,
    (SELECT value FROM meta WHERE name = 'oldest_reader') AS oldest_reader
