for _, it in ipairs(request.compare) do
  if redis.call('HGET', prefix .. it[1], 'version') ~= it[2] then
    return answer('conflict', request['then'])
  end
end
local expiry = request['until']
if expiry and (expiry[1] ~= epoch or tonumber(now) > tonumber(expiry[2])) then
  return answer('expired', request['then'])
end
local by = request.grants and evicts(OF_ALL)
if by then
  return {'evicts', by}
end

-- A script that fails is not undone. All that can fail comes before the token, which is written last.
local told = request.announces
if told and redis.call('ZCARD', prefix .. told[2]) > 0 then
  -- A user without a right to the channel can still record a run: waiters also look regularly.
  redis.pcall('PUBLISH', prefix .. told[1], '')
end
for _, it in ipairs(request.deletes) do
  for _, list in ipairs(it[2]) do
    redis.call('ZREM', prefix .. list, it[1])
  end
  redis.call('DEL', prefix .. it[1])
end
for _, it in ipairs(request.puts) do
  local key = prefix .. it.key
  local fields = it.fields
  local is_new = redis.call('EXISTS', key) == 0
  local number
  if it.numbered then
    number = not is_new and redis.call('HGET', key, 'number') or redis.call('INCR', prefix .. 'numbers')
    fields[#fields + 1] = 'number'
    fields[#fields + 1] = number
  end
  if it.stamps or is_new then
    fields[#fields + 1] = 'stamped_at_ms'
    fields[#fields + 1] = now
    fields[#fields + 1] = 'clock_epoch'
    fields[#fields + 1] = epoch
  end
  for _, place in ipairs(it.lists) do
    local rank = place[2]
    if rank == 'now' then
      rank = now
    elseif rank == 'number' then
      rank = number
    end
    redis.call('ZADD', prefix .. place[1], rank, it.key)
  end
  redis.call('HSET', key, unpack(fields))
end
return answer('done', request['then'])
