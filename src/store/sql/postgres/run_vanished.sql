-- Fences rise by grants, so the run that the token was taken from is the newest.
vanished AS (
    UPDATE {schema}.runs AS run SET outcome = 'unknown'
    FROM swapped, (
        SELECT fence FROM {schema}.runs
        WHERE token_group = $1
            AND fence = (SELECT max(fence) FROM {schema}.runs WHERE token_group = $1)
            AND session = $52 AND outcome = 'running'
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS open
    WHERE run.token_group = $1 AND run.fence = open.fence
)
