-- A role without further rights sees the standbys without their state.
SELECT
    current_setting('synchronous_commit') AS commit,
    current_setting('synchronous_standby_names') AS names,
    current_setting('fsync') = 'on' AS syncs,
    (SELECT count(*) FROM pg_stat_replication) AS standbys,
    (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS synchronous,
    (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL) AS hidden,
    (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT temporary)
        AS slots
