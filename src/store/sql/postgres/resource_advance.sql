WITH durable AS MATERIALIZED (SELECT {durable} AS setting),
clock AS MATERIALIZED ({clock}),
advanced AS (
    INSERT INTO {schema}.resources AS mark (resource, fence, advanced_at)
    SELECT $1, $2, now FROM clock, durable
    ON CONFLICT (resource) DO UPDATE
        SET fence = EXCLUDED.fence, advanced_at = EXCLUDED.advanced_at
        WHERE mark.fence <= EXCLUDED.fence
    RETURNING 1
)
SELECT now, timeline, EXISTS (SELECT FROM advanced) AS stored FROM clock
