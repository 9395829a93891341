-- As swap_locker.sql, for a row whose xmax stands for several transactions. For any other row the
-- server returns an error.
SELECT string_agg(DISTINCT locks.pid::text, ', ')
FROM tokens AS token, pg_get_multixact_members(token.xmax) AS member, pg_locks AS locks
WHERE token.token_group = $1 AND locks.locktype = 'transactionid' AND locks.granted
    AND locks.transactionid = member.xid
