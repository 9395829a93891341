-- The server's identity, and whether its commits are durable. Run only where the note has another clock
-- epoch: pg_control_system() reads a file, and costs a new process of the server 0.3 ms.
SELECT
    clock_timestamp() AS now,
    pg_postmaster_start_time() AS started, pg_walfile_name('0/1') AS timeline,
    system_identifier, current_setting('fsync') = 'on' AS durable
FROM pg_control_system()
