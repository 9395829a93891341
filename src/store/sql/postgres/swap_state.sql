-- The reason why a swap was not carried out.
SELECT
    clock_timestamp() AS now,
    pg_postmaster_start_time() AS started, pg_walfile_name('0/1') AS timeline,
    (SELECT version FROM tokens WHERE token_group = $1) AS version,
    (SELECT note_version FROM meta WHERE written_by::xid8::xid = meta.xmin) AS note,
    current_setting('fsync') = 'on' AS durable
