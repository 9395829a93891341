-- A group, whether it is there or not: a row for each that waits, in no order; one where none does.
-- $1: the group. meta is one row, and comes with each of them. A standby refuses to tell its
-- timeline: what it has may be old.
SELECT
    clock_timestamp() AS now,
    pg_postmaster_start_time() AS started, pg_walfile_name('0/1') AS timeline,
    oldest_reader,
    token.token_group, token.version, fence, state, client_bound, expected_client, stamped_at,
    token.clock_epoch, token.document::text,
    position, session, seen_at, waiter.clock_epoch, waiter.document::text,
    note, note_version, written_by, meta.xmin AS row_written_by,
    substring(pg_relation_filepath(meta.tableoid) FROM '([0-9]+)/[0-9]+$') AS database
FROM (VALUES ($1)) AS asked (token_group)
LEFT JOIN tokens AS token ON token.token_group = asked.token_group
LEFT JOIN waiters AS waiter ON waiter.token_group = asked.token_group
LEFT JOIN meta ON one
