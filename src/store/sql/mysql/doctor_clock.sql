-- The time when the statement began, and the time a hundredth of a second later. A server that was started with
-- sysdate-is-now gives one time twice.
SELECT
    TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', NOW(6)) AS begun_us,
    SLEEP(0.01) AS slept,
    TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', SYSDATE(6)) AS now_us
