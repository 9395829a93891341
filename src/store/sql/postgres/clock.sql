SELECT
    date_trunc('milliseconds', clock_timestamp()) AS now,
    -- NULL on a standby, which can't hold a token.
    CASE WHEN NOT pg_is_in_recovery() THEN
        to_char(pg_postmaster_start_time() AT TIME ZONE interval '0', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
        || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    END AS now_domain
