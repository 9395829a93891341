-- Whether a restart of this server certainly loses no commit: each is on the disk before its answer, and no
-- other server can have gone on in its place. Asked only where the note has another clock epoch.
SELECT
    @@global.innodb_flush_log_at_trx_commit = 1 AND NOT @@global.log_bin
    AND NOT EXISTS (
        SELECT 1
        FROM /*M! information_schema.global_variables */ /*!80000 performance_schema.global_variables */
        WHERE LOWER(variable_name) = 'wsrep_on' AND variable_value = 'ON'
            OR LOWER(variable_name) = 'innodb_flush_method' AND LOWER(variable_value) IN ('nosync', 'littlesync')
    ) AS durable
