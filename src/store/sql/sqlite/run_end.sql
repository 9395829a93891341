UPDATE runs SET outcome = ?4, exit_code = ?5, signal = ?6, ended_at = ?7
WHERE token_group = ?1 AND fence = ?2 AND session = ?3
  AND outcome IN ('running', 'unknown')
