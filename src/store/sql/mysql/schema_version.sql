-- What the store says about itself, and how many of its procedures this user may see.
SELECT
    version, oldest_reader,
    (
        SELECT COUNT(*) FROM information_schema.routines
        WHERE routine_schema = DATABASE() AND routine_name LIKE 'tokenrun\_%'
    ) AS procedures
FROM tokenrun_meta WHERE one = 1
