-- A waiter's heartbeat. $1: the group; $2: the session; $3: its document. $4, $5: the expiry and its clock
-- epoch: after it, or in another clock epoch, the heartbeat does not count, because its sender may be dead.
DELETE FROM tokenrun_waiters
WHERE token_group = $1 AND session <> $2 AND seen_at < SYSDATE(6) - INTERVAL 1 MINUTE
    AND SYSDATE(6) <= $4 AND CAST(@tokenrun_epoch AS BINARY) <=> CAST($5 AS BINARY);
INSERT INTO tokenrun_waiters (token_group, session, seen_at, clock_epoch, document)
SELECT $1, $2, now, $5, $3
FROM (SELECT SYSDATE(6) AS now, CAST(@tokenrun_epoch AS BINARY) <=> CAST($5 AS BINARY) AS same) AS clock
WHERE same AND now <= $4
ON DUPLICATE KEY UPDATE seen_at = now, clock_epoch = $5
