-- Every key begins with ARGV[1]; ARGV[2] is the request, in JSON. Versions are texts: 63 bits do not
-- fit a number of Lua's. Documents are never decoded.
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
-- The incarnation: the process, how many bytes it has received as a replica, and the history that it
-- had taken over when it was promoted.
local incarnation = value(info, 'run_id', '%x+'):sub(1, 16)
local received = value(info, 'total_net_repl_input_bytes', '[1-9]%d*')
if received then
  incarnation = incarnation .. '-' .. received
end
local before = value(info, 'master_replid2', '%x+')
local was_replica = before and before:find('[^0]') ~= nil
if was_replica then
  incarnation = incarnation .. '-' .. before:sub(1, 8)
elseif received then
  -- A server clears that history an hour after its last replica has left. The note still names it.
  local note = redis.call('HGET', prefix .. 'incarnation', 'document') or ''
  incarnation = note:match('"incarnation":"(' .. incarnation:gsub('%-', '%%-') .. '%-%x+)"') or incarnation
end
local now, epoch = clock(incarnation)

-- How long the server has certainly kept what was written, in seconds: nothing, if it was a replica,
-- if a command or the limit of its memory has removed keys since it started, or if the counters of all
-- that were reset.
local function kept()
  if was_replica or received or value(info, 'evicted_keys', '[1-9]') then
    return '0'
  end
  local past = redis.call('INFO', 'commandstats')
  for _, command in ipairs({'flushall', 'flushdb', 'swapdb', 'restore', 'migrate', 'config|resetstat'}) do
    if value(past, 'cmdstat_' .. command, 'calls=[1-9]') then
      return '0'
    end
  end
  return value(info, 'uptime_in_seconds', '%d+')
end

local entries, seen = {}, {}

local function add(key)
  if not seen[key] then
    seen[key] = true
    local fields = redis.call('HGETALL', prefix .. key)
    if #fields > 0 then
      entries[#entries + 1] = key
      entries[#entries + 1] = fields
    elseif key == 'incarnation' then
      entries[#entries + 1] = ''
      entries[#entries + 1] = kept()
    end
  end
end

local function answer(outcome, asked)
  for _, ask in ipairs(asked or {}) do
    if ask.one then
      add(ask.one)
    else
      local keys
      if ask.newest_first then
        keys = redis.call('ZRANGE', prefix .. ask.list, ask.to, ask.from, 'BYSCORE', 'REV', 'LIMIT', ask.skip, ask.limit)
      else
        keys = redis.call('ZRANGE', prefix .. ask.list, ask.from, ask.to, 'BYSCORE', 'LIMIT', ask.skip, ask.limit)
      end
      for _, key in ipairs(keys) do
        add(key)
      end
    end
  end
  return {outcome, now, epoch, incarnation, entries}
end
