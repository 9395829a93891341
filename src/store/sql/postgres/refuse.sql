-- A refused run. $1 to $4: group, client, reason, cause; $5: the fence; $6: the document; $7, $8: within how
-- many milliseconds of the last refusal nothing is written, and the newest record grows. The commit waits for
-- no disk and no standby: a refusal may be lost.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, set_config('synchronous_commit', 'off', true) AS lost
    WHERE pg_walfile_name('0/1') IS NOT NULL
),
newest AS (
    SELECT first_at, last_at, count FROM refusals, clock
    WHERE token_group = $1 AND client = $2 AND cause = $4 AND last_at <= now
    ORDER BY last_at DESC LIMIT 1
),
refused AS (
    INSERT INTO refusals AS refusal (
        token_group, client, reason, cause, first_at, last_at, count, fence, document
    )
    SELECT
        $1, $2, $3, $4,
        CASE WHEN now - last_at < $8 * interval '1 ms' THEN first_at ELSE now END,
        now,
        CASE WHEN now - last_at < $8 * interval '1 ms' THEN count + 1 ELSE 1 END,
        $5, $6::jsonb
    FROM clock LEFT JOIN newest ON true
    WHERE newest.last_at IS NULL OR now - last_at >= $7 * interval '1 ms'
    ON CONFLICT (token_group, client, cause, first_at) DO UPDATE SET
        last_at = excluded.last_at, count = excluded.count, fence = excluded.fence,
        document = excluded.document
    RETURNING refusal.token_group, refusal.reason
)
INSERT INTO refusal_totals AS counted (token_group, reason, total)
SELECT token_group, reason, 1 FROM refused
ON CONFLICT (token_group, reason) DO UPDATE SET total = counted.total + 1
