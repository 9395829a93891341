-- $34 to $36: after this time, and in another incarnation of the server, nothing happens any
-- more. $37: the version that was read. A row that another has locked is not waited for: it is
-- not found. {changes}: the columns that get another value.
clock AS MATERIALIZED (
    SELECT
        now, now <= $34 AND started IS NOT DISTINCT FROM $35 AND timeline = $36 AS in_time,
        {durable} AS durable
    FROM ({clock}) AS server
),
found AS MATERIALIZED (
    SELECT FROM {schema}.tokens WHERE token_group = $1 AND version = $37
    {lock} SKIP LOCKED
),
swapped AS (
    UPDATE {schema}.tokens AS token SET {changes}
    FROM clock, found
    WHERE token.token_group = $1 AND in_time
    RETURNING 1
)
