-- The first row of a group. $1: the group. $3 to $9: the row; $8: it is always stamped. $2: unused,
-- because no version was read. $28 to $31: the expiry, the server's start, its timeline and the clock
-- epoch, and $25, $27 the note, as in swap_grant.sql. $11: the session that leaves the queue. Of two inserts at once, the
-- second waits for the commit of the first, and then has no effect.
WITH clock AS MATERIALIZED (
    SELECT
        clock_timestamp() AS now,
        CASE current_setting('synchronous_commit')
            WHEN 'on' THEN NULL WHEN 'remote_apply' THEN NULL
            ELSE set_config('synchronous_commit', 'on', true)
        END AS durable
    WHERE $8 AND $2 IS NULL
        AND pg_postmaster_start_time() IS NOT DISTINCT FROM $29 AND pg_walfile_name('0/1') = $30
        AND ($25 IS NULL OR EXISTS (
            SELECT FROM meta
            WHERE note_version = $25 AND written_by::xid8::xid = meta.xmin
                AND (NOT $27 OR current_setting('fsync') = 'on')
        ))
),
swapped AS (
    INSERT INTO tokens (
        token_group, version, fence, state, client_bound, expected_client, stamped_at, clock_epoch,
        document
    )
    SELECT $1, $3, $4, $5, $6, $7, now, $31, $9::jsonb FROM clock WHERE now <= $28
    ON CONFLICT DO NOTHING
    RETURNING stamped_at
),
gone AS (
    DELETE FROM waiters AS waiter USING swapped
    WHERE waiter.token_group = $1 AND waiter.session = $11
)
SELECT now FROM clock, swapped
