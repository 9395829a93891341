-- The server's wall clock, in milliseconds, and the clock epoch of this incarnation.
local function clock(incarnation)
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), incarnation
end
