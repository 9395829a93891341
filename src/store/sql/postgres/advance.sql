-- $1: the resource; $2: the fence.
WITH clock AS MATERIALIZED (
    SELECT
        clock_timestamp() AS now,
        CASE current_setting('synchronous_commit')
            WHEN 'on' THEN NULL WHEN 'remote_apply' THEN NULL
            ELSE set_config('synchronous_commit', 'on', true)
        END AS durable
    WHERE pg_walfile_name('0/1') IS NOT NULL
),
advanced AS (
    INSERT INTO resources AS mark (resource, fence, advanced_at)
    SELECT $1, $2, now FROM clock
    ON CONFLICT (resource) DO UPDATE
        SET fence = excluded.fence, advanced_at = excluded.advanced_at
        WHERE mark.fence <= excluded.fence
    RETURNING 1
)
SELECT EXISTS (SELECT FROM advanced) AS stored FROM clock
