-- Whether the run was written, and whose stood in its place before.
SELECT
    EXISTS (SELECT FROM ended) AS written,
    (SELECT session FROM {schema}.runs WHERE token_group = $token_group AND fence = $run_fence)
        AS session
FROM swapped
