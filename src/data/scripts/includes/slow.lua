-- Attempts to targets that are slow, or of which nothing is known yet, hold together at most half of all slots, and those of one
-- organization at most half of that, so that hanging receivers leave room for others. `slow` and `slow:<org>` have their handles
-- by the end of their hold; a target that finds no room waits under the limiter `~slow` or `~slow:<org>`.
local slow_wait_ms = 1000

-- How many more slow attempts may begin; and else under which limiter to wait.
local function slow_room(org, slots)
  local limit = math.max(1, math.floor(slots / 2))
  local all = limit - call('ZCARD', P .. 'slow')
  if all <= 0 then
    return 0, '~slow'
  end
  local own = math.max(1, math.floor(limit / 2)) - call('ZCARD', P .. 'slow:' .. org)
  if own <= 0 and call('ZCARD', P .. 'ready') > 1 then
    return 0, '~slow:' .. org
  end
  return own <= 0 and all or math.min(all, own), nil
end
