-- $34 to $36 stand for what token_update.sql says. Two that insert at once: the second
-- waits for the first one's commit, and then does nothing.
clock AS MATERIALIZED (
    SELECT
        now, now <= $34 AND started IS NOT DISTINCT FROM $35 AND timeline = $36 AS in_time,
        {durable} AS durable
    FROM ({clock}) AS server
),
swapped AS (
    INSERT INTO {schema}.tokens ({columns})
    SELECT {values} FROM clock WHERE in_time
    ON CONFLICT DO NOTHING
    RETURNING 1
)
