-- {counts}: six parameters after those of the others. Who may write this row has the token's.
counted AS (
    INSERT INTO {schema}.outcomes AS old (
        token_group, succeeded, signalled, timed_out, not_started, vanished, forced
    )
    SELECT $1, {counts} FROM swapped
    ON CONFLICT (token_group) DO UPDATE SET
        succeeded = excluded.succeeded, signalled = excluded.signalled,
        timed_out = excluded.timed_out, not_started = excluded.not_started,
        vanished = excluded.vanished, forced = excluded.forced
)
