forgotten AS (
    DELETE FROM {schema}.once USING swapped
    WHERE token_group = $1 AND once_key = $42
)
