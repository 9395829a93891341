-- The reason why a note was not written.
SELECT
    clock_timestamp() AS now,
    pg_postmaster_start_time() AS started, pg_walfile_name('0/1') AS timeline,
    (SELECT note_version FROM meta) AS version
