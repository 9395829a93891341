-- The first condition is the index's, which says where the few open records are.
UPDATE runs SET outcome = 'unknown'
WHERE token_group = ?1 AND session = ?2
  AND outcome IN ('running', 'unknown') AND outcome = 'running'
