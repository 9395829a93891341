-- Every key begins with ARGV[1]; ARGV[2] is the request, in JSON; ARGV[3] names the database, if it is not
-- the first. Versions are texts: 63 bits do not fit a number of Lua's. Documents are never decoded.
local prefix = ARGV[1]
local request = cjson.decode(ARGV[2])

-- A value in the answer to INFO. A pattern that is searched for takes ten times as long as a text.
local function value(info, name, pattern)
  local _, at = info:find(name .. ':', 1, true)
  return at and info:match('^' .. pattern, at + 1)
end

local info = redis.call('INFO', 'server', 'replication', 'stats')
if value(info, 'role', '%a+') ~= 'master' then
  return {'replica', value(info, 'master_host', '[^\r\n]*') or '', value(info, 'master_port', '%d+') or ''}
end

-- The policy of a server that removes keys when its memory is full, if it is one of these, and it may have done so.
local function evicts(these)
  local policy = value(redis.call('INFO', 'memory'), 'maxmemory_policy', '[%w-]+') or ''
  if not policy:find(these) then
    return nil
  end
  local was_reset = value(redis.call('INFO', 'commandstats'), 'cmdstat_config|resetstat', 'calls=[1-9]')
  return (was_reset or value(info, 'evicted_keys', '[1-9]')) and policy
end

-- The keys in a part of a list.
local function range(ask)
  local list = prefix .. ask.list
  if ask.newest_first then
    return redis.call('ZRANGE', list, ask.to, ask.from, 'BYSCORE', 'REV', 'LIMIT', ask.skip, ask.limit)
  end
  return redis.call('ZRANGE', list, ask.from, ask.to, 'BYSCORE', 'LIMIT', ask.skip, ask.limit)
end
