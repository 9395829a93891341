SELECT
    date_trunc('milliseconds', clock_timestamp()) AS now,
    pg_postmaster_start_time() AS started,
    -- NULL on a standby, which can't hold a token.
    CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END
        AS timeline
