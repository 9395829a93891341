SELECT
    token_group, at, domain, version, act, client, until, once_key, fence, act_by, host,
    reason
FROM {schema}.events
WHERE ($2 IS NULL OR token_group = $2) AND ($3 IS NULL OR at >= $3) AND {primary}
ORDER BY at DESC, version LIMIT $1
