-- Nodes that take a majority for the store exclude none that takes this server alone for it.
if redis.call('EXISTS', prefix .. 'member') == 1 then
  return {'mixed'}
end

-- The incarnation: the process and its database; if it was a replica, also how many bytes it has received
-- as one, and the history that it had taken over when it was promoted.
local NONE = '00000000'
local incarnation = value(info, 'run_id', '%x+'):sub(1, 16) .. ARGV[3]
local received = value(info, 'total_net_repl_input_bytes', '%d+') or '0'
local history = (value(info, 'master_replid2', '%x+') or NONE):sub(1, 8)
local was_replica = received ~= '0' or history ~= NONE
local note = redis.call('HGET', prefix .. 'incarnation', 'document') or ''
local _, named = note:find('"incarnation":"' .. incarnation, 1, true)
local bytes, taken = note:match('^%-(%d+)%-(%x+)"', named and named + 1 or #note + 1)
-- A server clears that history an hour after its last replica has left, and CONFIG RESETSTAT the number.
-- What is left tells that it was not promoted again: the note still names it.
if bytes and (history == taken and taken ~= NONE or history == NONE and (received == bytes or received == '0')) then
  received, history = bytes, taken
end
if received ~= '0' or history ~= NONE then
  incarnation = incarnation .. '-' .. received .. '-' .. history
end
local now, epoch = clock(incarnation)
-- What is removed under another policy has a time limit, and no token has one.
local OF_ALL = '^allkeys'

-- How long the server has certainly kept what was written, in seconds: nothing, if it was a replica,
-- if a command or the limit of its memory has removed keys since it started, or if the counters of all
-- that were reset.
local function kept()
  if was_replica or value(info, 'evicted_keys', '[1-9]') then
    return '0'
  end
  local past = redis.call('INFO', 'commandstats')
  local losing = {'flushall', 'flushdb', 'swapdb', 'restore', 'restore-asking', 'migrate', 'config|resetstat'}
  for _, command in ipairs(losing) do
    if value(past, 'cmdstat_' .. command, 'calls=[1-9]') then
      return '0'
    end
  end
  return value(info, 'uptime_in_seconds', '%d+')
end

local entries, seen, policy = {}, {}, nil

local function add(key, call)
  if not seen[key] then
    seen[key] = true
    local fields = call('HGETALL', prefix .. key)
    -- A key of another program in a list hides no other entry.
    fields = fields.err and {'version', fields.err} or fields
    if #fields > 0 then
      entries[#entries + 1] = key
      entries[#entries + 1] = fields
    elseif key == 'incarnation' then
      entries[#entries + 1] = ''
      entries[#entries + 1] = kept()
    end
    -- A session that reads the note may be about to grant.
    policy = policy or key == 'incarnation' and evicts(OF_ALL)
  end
end

local function answer(outcome, asked)
  for _, ask in ipairs(asked or {}) do
    if ask.one then
      add(ask.one, redis.call)
    else
      for _, key in ipairs(range(ask)) do
        add(key, redis.pcall)
      end
    end
  end
  return {outcome, now, epoch, incarnation, entries, policy or ''}
end
