INSERT INTO resources (resource, fence, advanced_at) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET fence = excluded.fence, advanced_at = excluded.advanced_at
WHERE resources.fence <= excluded.fence
