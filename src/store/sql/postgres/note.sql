-- The note of the incarnation. $1: the version that was read, $2: the next; $3: the note. $4 to $6:
-- after this time, and in a server that was started at another time or has another timeline, nothing
-- happens any more. written_by is the transaction that has written the row, as xmin is: they differ in
-- a row that was restored. $7 to $9: the act that it is, its group and its document.
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
