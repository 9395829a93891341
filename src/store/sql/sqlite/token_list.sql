SELECT
    token_group, version, fence, state, client_bound, expected_client, stamped_at, stamped_tick,
    clock_epoch, document
FROM tokens WHERE token_group <> '' ORDER BY token_group
