SELECT token_group, once_key, done_at, fence, session, client
FROM {schema}.once WHERE ($1 IS NULL OR token_group = $1) AND {primary}
ORDER BY done_at DESC, once_key
