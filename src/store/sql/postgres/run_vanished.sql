vanished AS (
    UPDATE {schema}.runs AS run SET outcome = 'unknown'
    FROM swapped, (
        SELECT fence FROM {schema}.runs
        WHERE token_group = $1 AND session = $52 AND outcome = 'running'
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS open
    WHERE run.token_group = $1 AND run.fence = open.fence
)
