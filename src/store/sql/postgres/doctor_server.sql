SELECT
    current_setting('server_version') AS version,
    current_setting('server_version_num')::integer AS number,
    pg_is_in_recovery() AS standby,
    current_setting('transaction_read_only') = 'on' AS read_only,
    pg_postmaster_start_time()::text AS started,
    current_user::text AS role,
    current_database()::text AS database,
    pg_backend_pid() AS pid,
    (
        SELECT (extract(epoch FROM clock_timestamp() - backend_start) * 1000)::bigint
        FROM pg_stat_activity WHERE pid = pg_backend_pid()
    ) AS age_ms
