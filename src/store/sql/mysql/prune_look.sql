-- The input of a pruning: the time, the last note, whether there are more than $3 outputs, and the newest runs of
-- the group $1. $2: the number of runs.
SELECT
    SYSDATE(6) AS now, @tokenrun_epoch AS epoch, token.pruning_note,
    (SELECT COUNT(*) FROM tokenrun_outputs WHERE token_group = $1) > $3 AS crowded,
    newest.fence, newest.started_at
FROM tokenrun_tokens AS token LEFT JOIN (
    SELECT fence, started_at FROM tokenrun_runs WHERE token_group = $1 ORDER BY fence DESC LIMIT $2
) AS newest ON true
WHERE token.token_group = $1
