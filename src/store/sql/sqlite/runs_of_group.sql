-- The order is by fence: fences rise, even if the wall clock is set back.
SELECT token_group, fence, session, client, outcome, started_at, ended_at, document
FROM runs WHERE token_group = ?6
  AND (?2 IS NULL OR client = ?2) AND (?3 IS NULL OR instr(?3, ',' || outcome || ','))
  AND (?4 IS NULL OR started_at >= ?4) AND (?5 IS NULL OR started_at < ?5)
ORDER BY fence DESC LIMIT ?1
