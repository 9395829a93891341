INSERT INTO refusals (
    token_group, client, reason, cause, first_at, last_at, count, fence, document
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO UPDATE SET
    last_at = excluded.last_at, count = excluded.count, fence = excluded.fence,
    document = excluded.document
