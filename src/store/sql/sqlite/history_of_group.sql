SELECT
    token_group, fence, session, client, previous_client, host, pid, label,
    program, once_key, grant_kind, started_at, ended_at, outcome,
    exit_code, signal
FROM runs WHERE token_group = ?5
  AND (?2 IS NULL OR client = ?2) AND (?3 IS NULL OR outcome = ?3)
  AND (?4 IS NULL OR started_at >= ?4)
-- Fences rise, whatever becomes of the wall clock.
ORDER BY fence DESC LIMIT ?1
