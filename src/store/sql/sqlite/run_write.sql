-- The outcome from the run's own session replaces "unknown". Nothing replaces that outcome.
INSERT INTO runs (
    token_group, fence, session, client, outcome, started_at, ended_at, document, written_at
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO UPDATE SET
    outcome = excluded.outcome, ended_at = excluded.ended_at, document = excluded.document,
    written_at = excluded.written_at
WHERE runs.outcome = 'unknown' AND excluded.outcome <> 'unknown'
