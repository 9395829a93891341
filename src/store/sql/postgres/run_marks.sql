-- Behind run_end.sql, where the run's success makes its key done.
marked AS (
    INSERT INTO {schema}.once (token_group, once_key, done_at, fence, session, client)
    SELECT token_group, $run_once_key, ended_at, fence, session, client FROM ended
    ON CONFLICT DO NOTHING
)
