-- A run alone, whatever has become of its token. $1 and $15 to $21: the run. Its own session's outcome replaces
-- "unknown", and nothing replaces its own session's outcome. $23, $24: the key that it makes done, and the
-- key's document. Returns a row if this statement wrote the run.
WITH clock AS MATERIALIZED (
    SELECT
        clock_timestamp() AS now,
        CASE current_setting('synchronous_commit')
            WHEN 'on' THEN NULL WHEN 'remote_apply' THEN NULL
            ELSE set_config('synchronous_commit', 'on', true)
        END AS durable
    WHERE pg_walfile_name('0/1') IS NOT NULL
),
ended AS (
    INSERT INTO runs AS run (
        token_group, fence, session, client, outcome, started_at, ended_at, document, written_at
    )
    SELECT $1, $15, $16, $17, $18, $19, coalesce($20, now), $21::jsonb, now
    FROM clock
    ON CONFLICT (token_group, fence, session) DO UPDATE SET
        outcome = excluded.outcome, ended_at = excluded.ended_at, document = excluded.document,
        written_at = excluded.written_at
    WHERE run.outcome = 'unknown' AND excluded.outcome <> 'unknown'
    RETURNING run.ended_at
),
done AS (
    INSERT INTO done_keys (token_group, once_key, done_at, fence, document)
    SELECT $1, $23, ended_at, $15, $24::jsonb FROM ended WHERE $23 IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT ended_at FROM ended
