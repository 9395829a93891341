-- Sets a session up: whatever the server's defaults are, the statements mean the same. {seconds}: the limit of
-- a statement, where the server has one. A lock is waited for a second at most. @tokenrun_epoch belongs to this
-- session, and a session ends with its server: so the value shows in each statement that the server is still
-- the one that was started then, even behind a proxy that changes the session under its client.
SET sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION';
SET
    character_set_client = utf8mb4, character_set_results = utf8mb4, collation_connection = utf8mb4_bin,
    time_zone = '+00:00', autocommit = 1, completion_type = 0, lock_wait_timeout = 1,
    innodb_lock_wait_timeout = 1, sql_select_limit = 18446744073709551615, sql_safe_updates = 0,
    /*M! max_statement_time = {seconds}, idle_transaction_timeout = {seconds}, */ sql_big_selects = 1;
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
SET @tokenrun_server = CONCAT_WS(
    '_', /*M!101109 @@server_uid, */ /*!80000 @@server_uuid, */ CONCAT(@@hostname, ':', @@port)
);
SET @tokenrun_epoch = CONCAT(
    DATE_FORMAT(FROM_UNIXTIME(UNIX_TIMESTAMP() - (
        SELECT CAST(variable_value AS SIGNED)
        FROM /*M! information_schema.global_status */ /*!80000 performance_schema.global_status */
        WHERE variable_name IN ('UPTIME', 'Uptime')
    )), '%Y-%m-%dT%H:%i:%sZ '),
    @tokenrun_server
)
