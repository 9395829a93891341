-- How far the newest stamp is ahead of the clock that should have made it; 0 without a token.
SELECT COALESCE(TIMESTAMPDIFF(MICROSECOND, SYSDATE(6), MAX(stamped_at)) DIV 1000, 0) AS ahead_ms
FROM tokenrun_tokens
