SELECT user_version, (SELECT value FROM meta WHERE name = 'oldest_reader')
FROM pragma_user_version
