-- $expires, $started and $timeline stand for what token_update.sql says. Two that insert at once:
-- the second waits for the first one's commit, and then does nothing.
clock AS MATERIALIZED (
    SELECT {now} AS now, {durable} AS durable
    WHERE {started} IS NOT DISTINCT FROM $started AND {timeline} = $timeline
),
inserted AS (
    INSERT INTO {schema}.tokens ({columns})
    SELECT {values} FROM clock WHERE now <= $expires
    ON CONFLICT DO NOTHING
    RETURNING 1
),
swapped AS (SELECT now FROM clock, inserted)
