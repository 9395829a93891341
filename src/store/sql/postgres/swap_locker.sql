-- The process that has locked a row, as far as an ordinary role can see: the row's xmax is that
-- process's transaction.
SELECT string_agg(DISTINCT locks.pid::text, ', ')
FROM tokens AS token, pg_locks AS locks
WHERE token.token_group = $1 AND locks.locktype = 'transactionid' AND locks.granted
    AND locks.transactionid = token.xmax
