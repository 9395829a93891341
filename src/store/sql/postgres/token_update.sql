-- After $expires, and in another incarnation of the server than $started and $timeline tell,
-- nothing happens any more. $from: the version that was read. A row that another has locked is
-- not waited for: it is not found. {changes}: the columns that get another value.
found AS MATERIALIZED (
    SELECT ctid AS place, {now} AS now, {durable} AS durable
    FROM {schema}.tokens
    WHERE token_group = $token_group AND version = $from
        AND {started} IS NOT DISTINCT FROM $started AND {timeline} = $timeline
    {lock} SKIP LOCKED
),
swapped AS (
    UPDATE {schema}.tokens AS token SET {changes}
    FROM found
    WHERE token.ctid = place AND now <= $expires
    RETURNING now
)
