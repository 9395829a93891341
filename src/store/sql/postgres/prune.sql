-- Fences rise by grants: the oldest are looked at, and no more of them than a batch. Who
-- has locked one of them is not waited for. $2, $3: how long runs and keys are kept, in
-- milliseconds; $4: the batch; $5, $6: the newest fence of the runs and of the keys that the note
-- calls outlived, NULL for none.
WITH clock AS MATERIALIZED ({clock}),
old AS (
    SELECT fence FROM {schema}.runs
    WHERE token_group = $1 ORDER BY fence LIMIT $4
    FOR UPDATE SKIP LOCKED
),
runs AS (
    DELETE FROM {schema}.runs AS run USING old, clock
    WHERE run.token_group = $1 AND run.fence = old.fence AND run.outcome <> 'running'
        AND run.fence <= $5 AND run.started_at < now - $2 * interval '1 ms'
        AND run.fence < (SELECT max(fence) FROM {schema}.runs WHERE token_group = $1)
),
events AS (
    DELETE FROM {schema}.events AS event USING clock
    WHERE token_group = $1 AND fence <= $5 AND at < now - $2 * interval '1 ms'
)
DELETE FROM {schema}.once AS mark USING clock
WHERE token_group = $1 AND fence <= $6 AND done_at < now - $3 * interval '1 ms'
