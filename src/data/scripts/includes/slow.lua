-- Attempts to targets that are slow, or of which nothing is known yet, hold together at most half of all slots, and those of one
-- organization at most half of that, so that hanging receivers leave room for others. Beyond it, up to three quarters, a target
-- that has no attempt under way may have one: that is how it shows that it is not slow. `slow` and `slow:<org>` have the handles by
-- the end of their hold; a target that finds no room waits under the limiter `~slow` or `~slow:<org>`. Slots, `slow` and `~slow` are of a pool.
local slow_wait_ms = 1000
-- From here on an attempt counts as slow; so does a target of which nothing came back for as long.
local slow_ms = 1000

-- How many more slow attempts may begin; and else under which limiter to wait. `left` and
-- `probes_left`: what the worker has room for, as it counts its attempts in all shards.
local function slow_room(org, mark, slots, under_way, left, probes_left)
  -- What nobody released in time: a worker of a release that knew of no pools.
  call('ZREMRANGEBYSCORE', P .. 'slow' .. mark, '-inf', now)
  call('ZREMRANGEBYSCORE', P .. 'slow:' .. org, '-inf', now)
  local limit = math.max(1, math.floor(slots / 2))
  local held = call('ZCARD', P .. 'slow' .. mark)
  local own = math.max(1, math.floor(limit / 2)) - call('ZCARD', P .. 'slow:' .. org)
  local room = math.min(limit - held, own, left)
  if room > 0 then
    return room, nil
  end
  if under_way == 0 and probes_left > 0 and held < limit + math.floor(limit / 2) then
    return 1, nil
  end
  return 0, held < limit and own <= 0 and '~slow:' .. org or '~slow' .. mark
end

-- A target that turns out not to be slow waits no longer.
local function slow_release(n, blocked)
  call('ZREM', P .. 'wait:' .. blocked, n)
  call('HDEL', P .. 't:' .. n, 'b')
  activate(n)
end
