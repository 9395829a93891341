-- As queue_join.sql, it need not survive a crash: it waits for no disk, and for no standby.
DELETE FROM waiters
USING (SELECT set_config('synchronous_commit', 'off', true)) AS fleeting
WHERE token_group = $1 AND session = $2
