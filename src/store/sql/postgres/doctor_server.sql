SELECT
    current_setting('server_version') AS release,
    current_setting('server_version_num')::bigint AS number,
    pg_is_in_recovery() AS standby,
    current_setting('transaction_read_only') = 'on' AS read_only,
    NOT pg_is_in_recovery() AND current_setting('transaction_read_only') <> 'on' AS writable,
    pg_postmaster_start_time()::text AS id
