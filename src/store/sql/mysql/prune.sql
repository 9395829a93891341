-- Fences rise with each grant, so the lowest fences are the oldest runs: one batch of them is looked at. The
-- newest run and the newest success stay. $1: the group. $2, $3: how long runs and keys are kept, in
-- milliseconds; $4: the batch; $5, $6: the newest fence of the runs and of the keys that are outlived by the
-- note, NULL for none. $7 to $10: the same of outputs, and how many of them are kept: the time, the batch, the
-- fence, the number.
DELETE run FROM tokenrun_runs AS run
JOIN (
    SELECT fence, session FROM tokenrun_runs WHERE token_group = $1 ORDER BY fence LIMIT $4
) AS old ON run.fence = old.fence AND run.session = old.session
JOIN (
    SELECT
        MAX(fence) AS newest, MAX(IF(outcome = 'succeeded', fence, NULL)) AS success
    FROM tokenrun_runs WHERE token_group = $1
) AS stays
WHERE run.token_group = $1 AND run.fence <= $5
    AND run.written_at < SYSDATE(6) - INTERVAL $2 * 1000 MICROSECOND
    AND run.fence < stays.newest AND (run.outcome <> 'succeeded' OR run.fence < stays.success);
DELETE FROM tokenrun_acts
WHERE token_group = $1 AND fence <= $5 AND at < SYSDATE(6) - INTERVAL $2 * 1000 MICROSECOND;
DELETE FROM tokenrun_refusals
WHERE token_group = $1 AND fence <= $5 AND last_at < SYSDATE(6) - INTERVAL $2 * 1000 MICROSECOND;
DELETE output FROM tokenrun_outputs AS output
JOIN (
    SELECT fence, session FROM tokenrun_outputs WHERE token_group = $1 ORDER BY fence LIMIT $8
) AS old ON output.fence = old.fence AND output.session = old.session
LEFT JOIN (
    SELECT fence FROM tokenrun_outputs WHERE token_group = $1 ORDER BY fence DESC LIMIT 1 OFFSET $10
) AS excess ON true
WHERE output.token_group = $1 AND (
    (output.fence <= $9 AND output.written_at < SYSDATE(6) - INTERVAL $7 * 1000 MICROSECOND)
    OR output.fence <= excess.fence
);
DELETE FROM tokenrun_done_keys
WHERE token_group = $1 AND fence <= $6 AND done_at < SYSDATE(6) - INTERVAL $3 * 1000 MICROSECOND
