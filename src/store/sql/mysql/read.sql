-- The token of a group, if it exists, with one row for each waiter, in no order, and one row without waiters.
-- $1: the group. The one row of tokenrun_meta comes with each of them: without it, the store is not complete. made:
-- when the table was made, which tells a restored store, and its engine. flushes: the part of the settings in
-- incarnation.sql that can change while the server runs.
SELECT
    SYSDATE(6) AS now, @tokenrun_epoch AS epoch, meta.oldest_reader,
    token.token_group, token.version, token.fence, token.state, token.client_bound,
    token.expected_client, token.stamped_at, token.clock_epoch, token.document,
    waiter.position, waiter.session, waiter.seen_at, waiter.clock_epoch, waiter.document,
    meta.note, meta.note_version, @tokenrun_server AS server,
    (
        SELECT CONCAT(DATE_FORMAT(create_time, '%Y-%m-%dT%H:%i:%sZ '), engine) FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'tokenrun_tokens'
    ) AS made,
    (
        SELECT engine FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'tokenrun_fences'
    ) AS engine_of_fences,
    @@global.innodb_flush_log_at_trx_commit = 1 AS flushes,
    @@global.read_only NOT IN ('0', 'OFF') AS read_only
FROM tokenrun_meta AS meta
LEFT JOIN tokenrun_tokens AS token ON token.token_group = $1
LEFT JOIN tokenrun_waiters AS waiter ON waiter.token_group = $1
WHERE meta.one = 1
