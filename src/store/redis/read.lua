-- A server that removes keys without a time limit may have removed a token whose job runs. What it has
-- removed under another policy had a time limit.
if redis.call('INFO', 'stats'):find('evicted_keys:[1-9]') then
  local policy = redis.call('INFO', 'memory'):match('maxmemory_policy:([%w-]+)') or ''
  if policy:find('^allkeys') then
    return {'evicts', policy}
  end
end
return answer('done', request)
