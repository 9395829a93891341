forgotten AS (
    DELETE FROM {schema}.once USING swapped
    WHERE token_group = $token_group AND once_key = $act_once_key
)
