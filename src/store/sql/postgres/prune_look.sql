-- What a pruning has to know: the time, the last note, and the newest runs. $2: how many of them.
SELECT
    {now} AS now, {started} AS started, {timeline} AS timeline, pruning_note,
    newest.fence, newest.outcome <> 'running' AS is_over, newest.started_at
FROM {schema}.tokens AS token LEFT JOIN LATERAL (
    SELECT fence, outcome, started_at FROM {schema}.runs AS run
    WHERE run.token_group = token.token_group ORDER BY fence DESC LIMIT $2
) AS newest ON true
WHERE token.token_group = $1
