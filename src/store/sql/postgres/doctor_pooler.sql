SELECT
    pg_backend_pid() AS pid,
    (
        SELECT (extract(epoch FROM clock_timestamp() - backend_start) * 1000)::bigint
        FROM pg_stat_activity WHERE pid = pg_backend_pid()
    ) AS age_ms
