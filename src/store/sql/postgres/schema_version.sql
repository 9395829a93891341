SELECT
    (SELECT value FROM {schema}.meta WHERE name = 'version'),
    (SELECT value FROM {schema}.meta WHERE name = 'oldest_reader')
