-- A target is `t:<number>`: o organization, r route, d destination (its limiter), g generation of the throttle that is in
-- force, f finish tag, a mean attempt duration in ms, p paused, b what blocks it: `cap` (its own concurrency), `?` (throttle
-- not known yet), or the limiter under which it waits. With p or b it is not in `ready`.

-- Puts a target into `ready` unless it is there, blocked or paused; answers whether it did.
-- Start-time fair queueing on both levels: start = max(clock of the level, own finish).
local function activate(n)
  local t = call('HMGET', P .. 't:' .. n, 'o', 'b', 'p', 'f')
  local org = t[1]
  if not org or t[2] or t[3] then
    return false
  end
  local ready = P .. 'ready:' .. org
  if call('ZSCORE', ready, n) then
    return false
  end
  local o = call('HMGET', P .. 'o:' .. org, 'c', 'f')
  call('ZADD', ready, math.max(tonumber(o[1] or '0'), tonumber(t[4] or '0')), n)
  if not call('ZSCORE', P .. 'ready', org) then
    call('ZADD', P .. 'ready', math.max(tonumber(call('HGET', ctl, 'vt') or '0'), tonumber(o[2] or '0')), org)
  end
  return true
end

local function deactivate(n, org)
  local ready = P .. 'ready:' .. org
  call('ZREM', ready, n)
  if call('EXISTS', ready) == 0 then
    call('ZREM', P .. 'ready', org)
  end
end

-- Lets a target wait under a limiter until `at` (ms), or until somebody gives the limiter back what it lacks.
local function park(n, org, limiter, at)
  deactivate(n, org)
  call('HSET', P .. 't:' .. n, 'b', limiter)
  call('ZADD', P .. 'wait:' .. limiter, 'NX', counter(), n)
  call('ZADD', P .. 'waiting', 'LT', at, limiter)
end

-- Wakes up to `count` targets of a limiter, the longest waiting first; answers how many.
local function wake(limiter, count)
  local key = P .. 'wait:' .. limiter
  local woken = call('ZPOPMIN', key, count)
  for k = 1, #woken, 2 do
    call('HDEL', P .. 't:' .. woken[k], 'b')
    activate(woken[k])
  end
  if call('EXISTS', key) == 0 then
    call('ZREM', P .. 'waiting', limiter)
  end
  return #woken / 2
end

-- After work of the target ended or came back: removes a drained stream, and brings a target at its cap back to `ready`.
local function settle_target(n)
  local w = P .. 'w:' .. n
  local length = call('XLEN', w)
  if length == 0 then
    call('DEL', w)
  end
  if call('HGET', P .. 't:' .. n, 'b') == 'cap' then
    call('HDEL', P .. 't:' .. n, 'b')
    if length > 0 then
      activate(n)
    end
  end
end
