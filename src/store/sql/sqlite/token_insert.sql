INSERT INTO tokens (
    token_group, version, fence, state, client_bound, expected_client, stamped_at, stamped_tick,
    clock_epoch, document
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
