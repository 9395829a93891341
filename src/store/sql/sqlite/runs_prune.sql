-- Fences rise with each grant, so the lowest fences are the oldest runs. The statement reads one batch
-- of them. The newest run and the newest success stay.
DELETE FROM runs WHERE token_group = ?1 AND written_at < ?2 AND fence <= ?3
  AND fence < (SELECT max(fence) FROM runs WHERE token_group = ?1)
  AND fence IN (SELECT fence FROM runs WHERE token_group = ?1 ORDER BY fence LIMIT ?4)
  AND (
    outcome <> 'succeeded' OR EXISTS (
        SELECT 1 FROM runs AS later
        WHERE later.token_group = ?1 AND later.fence > runs.fence AND later.outcome = 'succeeded'
    )
  )
