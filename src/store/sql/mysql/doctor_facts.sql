-- The settings and counters that matter, as names and values. Those that the server does not have are missing.
SELECT LOWER(variable_name) AS name, variable_value AS value
FROM /*M! information_schema.global_variables */ /*!80000 performance_schema.global_variables */
WHERE LOWER(variable_name) IN (
    'version', 'read_only', 'innodb_flush_log_at_trx_commit',
    'innodb_flush_method', 'log_bin', 'sync_binlog', 'binlog_format',
    'wsrep_on', 'group_replication_group_name', 'group_replication_single_primary_mode',
    'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled', 'max_connections'
)
UNION ALL
SELECT LOWER(variable_name), variable_value
FROM /*M! information_schema.global_status */ /*!80000 performance_schema.global_status */
WHERE LOWER(variable_name) IN ('slaves_connected', 'threads_connected')
UNION ALL
SELECT 'galera_nodes', variable_value
FROM /*M! information_schema.global_status */ /*!80000 performance_schema.global_status */
WHERE LOWER(variable_name) = 'wsrep_cluster_size'
