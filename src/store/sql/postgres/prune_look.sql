-- The input of a pruning: the time, the last note, whether there are more than $3 outputs, and the newest
-- runs of the group $1. $2: the number of runs.
SELECT
    clock_timestamp() AS now,
    pg_postmaster_start_time() AS started, pg_walfile_name('0/1') AS timeline,
    pruning_note, (SELECT count(*) FROM outputs WHERE token_group = $1) > $3 AS crowded,
    newest.fence, newest.started_at
FROM tokens AS token LEFT JOIN LATERAL (
    SELECT fence, started_at FROM runs AS run
    WHERE run.token_group = token.token_group ORDER BY fence DESC LIMIT $2
) AS newest ON true
WHERE token.token_group = $1
