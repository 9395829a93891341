SELECT
    current_setting('server_version') AS version,
    current_setting('server_version_num')::integer AS number,
    pg_is_in_recovery() AS standby,
    current_setting('transaction_read_only') = 'on' AS read_only,
    pg_postmaster_start_time()::text AS started
