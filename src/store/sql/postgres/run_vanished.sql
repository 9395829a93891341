-- Fences rise by grants, so the run that the token was taken from is the newest.
vanished AS (
    UPDATE {schema}.runs AS run SET outcome = 'unknown'
    FROM swapped, (
        SELECT fence FROM {schema}.runs
        WHERE token_group = $token_group
            AND fence = (SELECT max(fence) FROM {schema}.runs WHERE token_group = $token_group)
            AND session = $vanished_session AND outcome = 'running'
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS open
    WHERE run.token_group = $token_group AND run.fence = open.fence
)
