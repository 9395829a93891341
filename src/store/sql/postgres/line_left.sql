-- Who is granted the token leaves the line.
taken AS (
    DELETE FROM {schema}.waiters AS waiter USING swapped
    WHERE waiter.token_group = $token_group AND waiter.session = $run_session
)
