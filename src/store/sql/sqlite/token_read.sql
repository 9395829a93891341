SELECT
    token_group, version, fence, state, client_bound, expected_client, stamped_at, stamped_tick,
    clock_epoch, document,
    EXISTS (SELECT 1 FROM waiters WHERE token_group = ?1) AS in_queue
FROM tokens WHERE token_group IN (?1, '')
