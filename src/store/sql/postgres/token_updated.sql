SELECT
    now, now_domain, EXISTS (SELECT FROM swapped) AS done,
    found.version IS DISTINCT FROM $37 AS conflict,
    found.version IS NULL
        AND EXISTS (SELECT FROM {schema}.tokens WHERE token_group = $1) AS locked
FROM clock LEFT JOIN found ON true
