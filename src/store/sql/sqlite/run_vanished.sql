-- The last condition but one is the index's.
UPDATE runs INDEXED BY runs_open
SET outcome = 'unknown'
WHERE token_group = ?1 AND session = ?2
  AND outcome IN ('running', 'unknown') AND outcome = 'running'
