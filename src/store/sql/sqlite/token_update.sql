-- The version was compared in the same transaction.
UPDATE tokens SET
    version = ?2, fence = ?3, state = ?4, client_bound = ?5, expected_client = ?6,
    stamped_at = ?7, stamped_tick = ?8, clock_epoch = ?9, document = ?10
WHERE token_group = ?1
