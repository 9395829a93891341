-- The note of the incarnation. $1: the version that was read, $2: the next version; $3: the note. $4: the
-- expiry; $5, $6: the server's start and timeline. After the expiry, or on a server with another start
-- or timeline, the statement has no effect. written_by and xmin are the transaction that wrote the row;
-- they differ in a restored row. $7 to $9: the group, fence and document of the act, if it is one.
WITH clock AS MATERIALIZED (
    SELECT
        clock_timestamp() AS now,
        CASE current_setting('synchronous_commit')
            WHEN 'on' THEN NULL WHEN 'remote_apply' THEN NULL
            ELSE set_config('synchronous_commit', 'on', true)
        END AS durable
    WHERE pg_postmaster_start_time() IS NOT DISTINCT FROM $5 AND pg_walfile_name('0/1') = $6
),
written AS (
    UPDATE meta SET note = $3, note_version = $2, written_by = pg_current_xact_id()::text
    FROM clock
    WHERE coalesce(note_version, 0) = coalesce($1, 0) AND now <= $4
    RETURNING now
),
recorded AS (
    INSERT INTO acts (token_group, at, version, fence, document)
    SELECT $7, now, $2, $8, $9::jsonb FROM written WHERE $7 IS NOT NULL
)
SELECT now FROM written
