-- As in queue_join.sql, the change need not survive a crash, so the commit waits for no disk and no
-- standby.
DELETE FROM waiters
USING (SELECT set_config('synchronous_commit', 'off', true)) AS fleeting
WHERE token_group = $1 AND session = $2
