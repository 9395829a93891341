-- Fences rise with each grant, so the lowest fences are the oldest runs. The statement reads one batch
-- of them and skips locked ones. The newest run and the newest success stay. $1: the group. $2, $3: how
-- long runs and keys are kept, in milliseconds; $4: the batch; $5, $6: the newest fence of the runs and
-- of the keys that are outlived by the note, NULL for none. $7 to $10: the same of outputs, and how many
-- of them are kept: the time, the batch, the fence, the number.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
old AS (
    SELECT fence, session FROM runs
    WHERE token_group = $1 ORDER BY fence LIMIT $4
    FOR UPDATE SKIP LOCKED
),
pruned AS (
    DELETE FROM runs AS run USING old, clock
    WHERE run.token_group = $1 AND run.fence = old.fence AND run.session = old.session
        AND run.fence <= $5 AND run.written_at < now - $2 * interval '1 ms'
        AND run.fence < (SELECT max(fence) FROM runs WHERE token_group = $1)
        AND (
            run.outcome <> 'succeeded' OR EXISTS (
                SELECT FROM runs AS later
                WHERE later.token_group = $1 AND later.fence > run.fence
                    AND later.outcome = 'succeeded'
            )
        )
),
forgotten AS (
    DELETE FROM acts AS act USING clock
    WHERE token_group = $1 AND fence <= $5 AND at < now - $2 * interval '1 ms'
),
unrefused AS (
    DELETE FROM refusals AS refusal USING clock
    WHERE token_group = $1 AND fence <= $5 AND last_at < now - $2 * interval '1 ms'
),
silenced AS (
    DELETE FROM outputs AS output USING clock
    WHERE token_group = $1
        AND fence IN (SELECT fence FROM outputs WHERE token_group = $1 ORDER BY fence LIMIT $8)
        AND (
            (fence <= $9 AND written_at < now - $7 * interval '1 ms') OR fence <= (
                SELECT fence FROM outputs
                WHERE token_group = $1 ORDER BY fence DESC LIMIT 1 OFFSET $10
            )
        )
)
DELETE FROM done_keys AS done USING clock
WHERE token_group = $1 AND fence <= $6 AND done_at < now - $3 * interval '1 ms'
