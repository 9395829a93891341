-- A grant. The new fence is a new key: the row is not found while a transaction of an earlier run locks
-- the old key.
-- $25: the version of the note that the grant was judged by, NULL for none; $27: whether commits were
-- durable then. If the note has changed since, was restored or is no longer true, the grant has no effect.
-- $1: the group. $3 to $9: the new row; $8: whether it is stamped. $2: the version that was read.
-- $28: the expiry; $29, $30: the server's start and timeline. After the expiry, or on a server with
-- another start or timeline, the swap has no effect. $31: the clock epoch, which is start and
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
    WHERE token_group = $1 AND version = $2
        AND pg_postmaster_start_time() IS NOT DISTINCT FROM $29 AND pg_walfile_name('0/1') = $30
        AND ($25 IS NULL OR EXISTS (
            SELECT FROM meta
            WHERE note_version = $25 AND written_by::xid8::xid = meta.xmin
                AND (NOT $27 OR current_setting('fsync') = 'on')
        ))
    FOR UPDATE SKIP LOCKED
)
UPDATE tokens AS token SET
    version = $3, fence = $4, state = $5, client_bound = $6, expected_client = $7,
    stamped_at = CASE WHEN $8 THEN now ELSE stamped_at END,
    clock_epoch = CASE WHEN $8 THEN $31 ELSE clock_epoch END,
    document = $9::jsonb
FROM found
WHERE token.ctid = place AND now <= $28
RETURNING now
