-- Fails on a server that accepts no writes, with two rows in the place of one: what follows is not carried out,
-- even for a user who may write there all the same.
SET @tokenrun_writable = (
    SELECT 1 UNION ALL SELECT 2 FROM DUAL WHERE @@global.read_only NOT IN ('0', 'OFF')
)
