-- The whole run: history may have lost what it had of it. A session closes its own once.
INSERT INTO runs (
    token_group, fence, session, client, previous_client, host, pid, label,
    program, once_key, grant_kind, started_at, ended_at, outcome,
    exit_code, signal
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16
)
ON CONFLICT (token_group, fence) DO UPDATE
SET ended_at = excluded.ended_at, outcome = excluded.outcome,
    exit_code = excluded.exit_code, signal = excluded.signal
WHERE session = excluded.session AND outcome IN ('running', 'unknown')
