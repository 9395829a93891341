-- The token of a group, if it exists, with one row for each waiter, in no order, and one row without
-- waiters. $1: the group. meta has one row, which comes with each of them. A standby can't name its timeline,
-- so this fails there: a standby's rows may be outdated. The server finds the table of a token that exists by
-- the token: to look a table up by its name takes a new connection 0.1 ms.
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
    (SELECT relpersistence = 'p' FROM pg_class WHERE oid = coalesce(token.tableoid, to_regclass('tokens'))) AS logged
FROM (VALUES ($1)) AS asked (token_group)
LEFT JOIN tokens AS token ON token.token_group = asked.token_group
LEFT JOIN waiters AS waiter ON waiter.token_group = asked.token_group
LEFT JOIN meta ON one
