-- Every group. Without any group, one row whose group is NULL.
SELECT
    clock_timestamp() AS now,
    pg_postmaster_start_time() AS started, pg_walfile_name('0/1') AS timeline,
    (SELECT oldest_reader FROM meta) AS oldest_reader,
    token.token_group, version, fence, state, client_bound, expected_client, stamped_at,
    token.clock_epoch, token.document::text
FROM (VALUES (1)) AS one LEFT JOIN tokens AS token ON true
ORDER BY token.token_group
