-- A server that removes keys without a time limit may have removed a token whose job runs. What it has
-- removed under another policy had a time limit.
if value(info, 'evicted_keys', '[1-9]') then
  local policy = value(redis.call('INFO', 'memory'), 'maxmemory_policy', '[%w-]+') or ''
  if policy:find('^allkeys') then
    return {'evicts', policy}
  end
end
return answer('done', request)
