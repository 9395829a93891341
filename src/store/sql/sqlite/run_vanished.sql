-- Fences rise by grants, so the run that the token was taken from is the newest.
UPDATE runs SET outcome = 'unknown'
WHERE token_group = ?1
  AND fence = (SELECT max(fence) FROM runs WHERE token_group = ?1)
  AND session = ?2 AND outcome = 'running'
