-- Sets a key of yours only while the run with this fence has the token of its group:
--
--   redis-cli -h db1 --eval fenced-set.lua '{tokenrun}:token:nightly' result , "$TOKENRUN_FENCE" value
--
-- The check and the write are one script, so that no other run can begin in between. Replace the last
-- line by your own commands. They must be in the same server (in a cluster: on the same node).
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'state') ~= 'running' then
  return redis.error_reply('FENCED this run no longer has its token')
end
return redis.call('SET', KEYS[2], ARGV[2])
