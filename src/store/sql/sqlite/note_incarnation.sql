-- The version was compared in the same transaction.
INSERT INTO tokens (
    token_group, version, fence, state, stamped_at, stamped_tick, clock_epoch, document
) VALUES ('', ?1, 0, 'note', ?2, ?3, ?4, ?5)
ON CONFLICT (token_group) DO UPDATE SET
    version = excluded.version, stamped_at = excluded.stamped_at,
    stamped_tick = excluded.stamped_tick, clock_epoch = excluded.clock_epoch, document = excluded.document
