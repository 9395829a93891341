-- Without being told SQLite would search the group's whole history.
UPDATE runs INDEXED BY runs_open
SET outcome = ?3, exit_code = ?4, signal = ?5, ended_at = ?6
WHERE token_group = ?1 AND session = ?2
  AND outcome IN ('running', 'unknown')
