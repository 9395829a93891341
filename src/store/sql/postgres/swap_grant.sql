-- A grant. The new fence is a new key: the row is not found while a transaction of an earlier run locks
-- the old key.
-- $14: the version of the note that the grant was judged by, NULL for none; $15: whether commits were
-- durable then. If the note has changed since, was restored or is no longer true, the grant has no effect.
-- $1: the group. $2 to $8: the new row; $7: whether it is stamped. $9: the version that was read.
-- $10: the expiry; $11, $12: the server's start and timeline. After the expiry, or on a server with
-- another start or timeline, the swap has no effect. $13: the clock epoch, which is start and
-- timeline. The statement does not find a row that another transaction has locked, so it never waits
-- for it. The commit is durable, whatever the site's default is. A stricter default stays.
WITH found AS MATERIALIZED (
    SELECT
        ctid AS place, clock_timestamp() AS now,
        CASE current_setting('synchronous_commit')
            WHEN 'on' THEN NULL WHEN 'remote_apply' THEN NULL
            ELSE set_config('synchronous_commit', 'on', true)
        END AS durable
    FROM tokens
    WHERE token_group = $1 AND version = $9
        AND pg_postmaster_start_time() IS NOT DISTINCT FROM $11 AND pg_walfile_name('0/1') = $12
        AND ($14 IS NULL OR EXISTS (
            SELECT FROM meta
            WHERE note_version = $14 AND written_by::xid8::xid = meta.xmin
                AND (NOT $15 OR current_setting('fsync') = 'on')
        ))
    FOR UPDATE SKIP LOCKED
)
UPDATE tokens AS token SET
    version = $2, fence = $3, state = $4, client_bound = $5, expected_client = $6,
    stamped_at = CASE WHEN $7 THEN now ELSE stamped_at END,
    clock_epoch = CASE WHEN $7 THEN $13 ELSE clock_epoch END,
    document = $8::jsonb
FROM found
WHERE token.ctid = place AND now <= $10
RETURNING now
