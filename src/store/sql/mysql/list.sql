-- Every group. Without any group, one row whose group is NULL.
SELECT
    SYSDATE(6) AS now, @tokenrun_epoch AS epoch, meta.oldest_reader,
    token.token_group, token.version, token.fence, token.state, token.client_bound,
    token.expected_client, token.stamped_at, token.clock_epoch, token.document,
    @@global.read_only NOT IN ('0', 'OFF') AS read_only
FROM tokenrun_meta AS meta LEFT JOIN tokenrun_tokens AS token ON true
WHERE meta.one = 1
ORDER BY token.token_group
