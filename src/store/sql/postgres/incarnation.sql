-- Which server this is, and whether it is set to keep its commits. Asked only where the note is of
-- another clock: pg_control_system() reads a file, and costs a new process of the server 0.3 ms.
SELECT
    clock_timestamp() AS now,
    pg_postmaster_start_time() AS started, pg_walfile_name('0/1') AS timeline,
    system_identifier, current_setting('fsync') = 'on' AS durable
FROM pg_control_system()
