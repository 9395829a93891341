-- How much time passes within a statement that sleeps. On a server that was started with sysdate-is-now, none.
SELECT SLEEP(0.01) AS slept, TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) AS passed_us
