SELECT
    now, now_domain, EXISTS (SELECT FROM swapped) AS done,
    NOT expired.yes OR EXISTS (SELECT FROM {schema}.tokens WHERE token_group = $1) AS conflict,
    false AS locked
FROM clock, expired
