-- One member of a quorum. Ballots and generations are texts of one width, and so are ordered as texts.

-- A member keeps for so long that an entry was removed, or only promised.
local KEPT_MS = 8 * 24 * 60 * 60 * 1000

-- For so long at most a client that lets it join keeps others from doing the same at once.
local JOINING_MS = 1000

-- What it has removed may have been a promise: until it starts anew, nothing that it says counts.
local by = evicts('^[^n]') or value(info, 'evicted_keys', '[1-9]') and 'noeviction'
if by then
  return {'evicts', by}
end

local process = value(info, 'run_id', '%x+'):sub(1, 16) .. ARGV[3]
local me, all = prefix .. 'member', prefix .. 'registers'
local state = redis.call('HMGET', me, 'process', 'generation', 'incarnation', 'highest', 'joins_by',
  'joins_until_ms', 'joins_within_ms')
local is_sure = state[1] == process
local generation, incarnation, highest = state[2] or '', state[3] or '', state[4] or ''
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function whole(number)
  return string.format('%.0f', number)
end

local function register(key)
  return prefix .. 'register:' .. key
end

local function report(outcome, parts, held)
  return {outcome, process, is_sure and 1 or 0, generation, incarnation, highest, whole(now), parts or {}, held or {}}
end

-- Nodes that take this server alone for the store exclude none that takes a majority for it.
if #redis.call('ZRANGE', prefix .. 'tokens', 0, 0) > 0 then
  return report('alone')
end

-- A request is for one process, in one generation; to a member that has joined, or to one that has not.
if request.process and request.process ~= process
  or request.generation and request.generation < generation
  or is_sure == request.of_unsure
  or request.of_unsure and request.wish ~= 'enter' and request.generation ~= generation then
  return report('refused')
end
-- Several clients that let it join at once would begin anew for ever. One that has more than twice the time takes over:
-- many clients with little time would keep it from joining for ever.
if request.of_unsure then
  local left = (tonumber(state[6]) or 0) - now
  local is_another = request.by and state[5] and state[5] ~= request.by
  if is_another and left > 0 and left <= JOINING_MS and request.within <= 2 * (tonumber(state[7]) or 0) then
    return report('refused')
  end
  redis.call('HSET', me, 'joins_by', request.by or state[5] or '', 'joins_until_ms',
    whole(now + math.min(request.within, JOINING_MS)), 'joins_within_ms', whole(request.within))
end
if request.generation and request.generation > generation then
  generation = request.generation
  redis.call('HSET', me, 'generation', generation)
end

local function raise(ballot)
  if ballot > highest then
    highest = ballot
    redis.call('HSET', me, 'highest', highest)
  end
end

local function is_behind()
  for _, key in ipairs(request.registers) do
    local promised = redis.call('HGET', register(key), 'promised')
    if promised and promised > request.ballot then
      return true
    end
  end
end

-- What is asked for: the keys of each part, and what the member holds of them. `registers`: also what was
-- written together with each.
local function show(registers)
  local parts, seen, found = {}, {}, {}
  local function add(key)
    if seen[key] then
      return seen[key]
    end
    local it = redis.call('HMGET', register(key), 'accepted', 'value', 'stamped_at_ms', 'about')
    seen[key] = it[4] or '{}'
    found[#found + 1] = {key, it[1] or '', it[2] or '', it[3] and whole(now - it[3]) or '', seen[key]}
    return seen[key]
  end
  for n, ask in ipairs(request.asked) do
    parts[n] = ask.one and {ask.one} or range(ask)
    for _, key in ipairs(parts[n]) do
      add(key)
    end
  end
  for _, key in ipairs(registers or {}) do
    for _, other in ipairs(cjson.decode(add(key)).with or {}) do
      add(other)
    end
  end
  return report('done', parts, found)
end

-- Takes what is newer than what it holds.
local function write(it)
  local key = register(it.key)
  local before = redis.call('HMGET', key, 'accepted', 'promised', 'lists')
  if before[1] and before[1] >= it.ballot then
    return
  end
  for _, list in ipairs(cjson.decode(before[3] or '[]')) do
    redis.call('ZREM', prefix .. 'list:' .. list, it.key)
  end
  local names = {}
  for n, place in ipairs(it.lists) do
    names[n] = place[1]
    redis.call('ZADD', prefix .. 'list:' .. place[1], place[2], it.key)
  end
  local promised = before[2] and before[2] > it.ballot and before[2] or it.ballot
  redis.call('HSET', key, 'promised', promised, 'accepted', it.ballot, 'stamped_at_ms', whole(now - it.age),
    'about', it.about, 'lists', cjson.encode(names))
  if it.value then
    redis.call('HSET', key, 'value', it.value)
    redis.call('PERSIST', key)
    redis.call('ZADD', all, '+inf', it.key)
  else
    redis.call('HDEL', key, 'value')
    redis.call('PEXPIRE', key, KEPT_MS)
    redis.call('ZADD', all, whole(now), it.key)
    redis.call('ZREMRANGEBYSCORE', all, '-inf', whole(now - KEPT_MS))
  end
  raise(it.ballot)
end

local wishes = {show = show}

function wishes.prepare()
  if is_behind() then
    return report('behind')
  end
  for _, key in ipairs(request.registers) do
    redis.call('HSET', register(key), 'promised', request.ballot)
    if redis.call('HEXISTS', register(key), 'value') == 0 then
      redis.call('PEXPIRE', register(key), KEPT_MS)
    end
  end
  raise(request.ballot)
  return show(request.registers)
end

-- All of them, or none.
function wishes.accept()
  if is_behind() then
    return report('behind')
  end
  if request.expiry and now > tonumber(request.expiry) then
    return report('expired')
  end
  for _, it in ipairs(request.puts) do
    write(it)
  end
  if request.announces then
    -- A user without a right to the channel can still record a run: waiters also look regularly.
    redis.pcall('PUBLISH', prefix .. request.announces, '')
  end
  return show()
end

function wishes.enter()
  local held = {}
  for n, key in ipairs(redis.call('ZRANGE', all, 0, -1)) do
    held[n] = {key, redis.call('HGET', register(key), 'accepted') or '', '', '', '{}'}
  end
  return report('done', {}, held)
end

function wishes.join()
  redis.call('HSET', me, 'process', process, 'incarnation', request.incarnation)
  is_sure, incarnation = true, request.incarnation
  return report('done')
end

return wishes[request.wish]()
