SELECT token_group, once_key, done_at, fence, session, client
FROM {schema}.once WHERE token_group = $1 AND once_key = $2 AND {primary}
