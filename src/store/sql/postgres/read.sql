-- The token of a group, if it exists, with one row for each waiter, in no order, and one row without
-- waiters. $1: the group; $2: a key of --once or NULL, whose row comes with each of them if it is done.
-- meta has one row, which does too. A standby can't name its timeline, so this fails there: a standby's
-- rows may be outdated.
SELECT
    clock_timestamp() AS now,
    pg_postmaster_start_time() AS started, pg_walfile_name('0/1') AS timeline,
    oldest_reader,
    token.token_group, token.version, token.fence, state, client_bound, expected_client, stamped_at,
    token.clock_epoch, token.document::text,
    position, session, seen_at, waiter.clock_epoch, waiter.document::text,
    note, note_version, written_by, meta.xmin::text AS row_written_by,
    substring(pg_relation_filepath(meta.tableoid) FROM '([0-9]+)/[0-9]+$') AS database,
    current_setting('fsync') = 'on' AS durable,
    (SELECT relpersistence = 'p' FROM pg_class WHERE oid = 'tokens'::regclass) AS logged,
    done.token_group, done.once_key, done.done_at, done.fence, done.document::text
FROM (VALUES ($1)) AS asked (token_group)
LEFT JOIN tokens AS token ON token.token_group = asked.token_group
LEFT JOIN waiters AS waiter ON waiter.token_group = asked.token_group
LEFT JOIN done_keys AS done ON done.token_group = asked.token_group AND done.once_key = $2
LEFT JOIN meta ON one
