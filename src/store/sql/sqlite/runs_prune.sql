-- Fences rise by grants: the oldest are looked at, and no more of them than a batch.
DELETE FROM runs WHERE token_group = ?1 AND started_at < ?2 AND outcome <> 'running'
  AND fence < (SELECT max(fence) FROM runs WHERE token_group = ?1)
  AND fence <= ?3 AND fence IN (
    SELECT fence FROM runs WHERE token_group = ?1 ORDER BY fence LIMIT ?4
)
