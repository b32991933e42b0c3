-- @include "apart.lua"
-- @include "batch.lua"
-- @include "order.lua"
-- @include "pools.lua"
-- @include "shard.lua"

-- A target is `t:<number>`, a hash with the fields of `F.target` (../hash-fields.ts). What blocks it (F.target.blocked_by): `cap` (its own concurrency), `?`
-- (setting not known yet), `!` (its circuit), `~b<number>` (its batch is not complete), `~o<number>` (the retry of an earlier message: order.lua), or
-- the limiter under which it waits (its own, or the one that it shares). A target that is blocked or paused is not in `ready`.
--
-- Its work is in two lanes: `w:<number>` fresh messages, `w:<number>r` retries (F.target.has_retry_lane), so that a wall of
-- retries does not hold up fresh ones. A handle is `<lane>/<entry>`.
local function retry_lane(n)
  return n .. 'r'
end

local function number_of_lane(lane)
  return string.match(lane, '^%d+')
end

-- For which pools the script has put a target into `ready`; true: an organization, too.
local woken = {}

-- Puts a target into `ready` unless it is there, blocked or paused; returns whether it did.
-- Start-time fair queueing on both levels: start = max(clock of the level, own finish).
local function activate(n)
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.blocked_by, F.target.paused_since_ms, F.target.finish_tag)
  local org, blocked = t[1], t[2]
  if not org or t[3] then
    return false
  end
  if blocked then
    local kind = string.sub(blocked, 1, 2)
    if not (kind == '~b' and batch_release(n, blocked) or kind == '~o' and order_release(n, blocked)) then
      return false
    end
  end
  local ready = P .. 'ready:' .. org
  if call('ZSCORE', ready, n) then
    return false
  end
  local o = call('HMGET', P .. 'o:' .. org, F.organization.clock, F.organization.finish_tag, F.organization.pool)
  local mark = o[3] or ''
  marks[org] = mark
  call('ZADD', ready, math.max(tonumber(o[1] or '0'), tonumber(t[4] or '0')), n)
  if call('ZSCORE', P .. 'ready' .. mark, org) then
    woken[mark] = woken[mark] or false
  else
    call('ZADD', P .. 'ready' .. mark, math.max(tonumber(call('HGET', ctl, F.control.virtual_clock .. mark) or '0'), tonumber(o[2] or '0')), org)
    woken[mark] = true
  end
  return true
end

local function ring_woken()
  for mark, is_first in pairs(woken) do
    ring(is_first, mark)
  end
end

-- The same for a set of targets; rings when one of them was not there.
local function activate_all(targets)
  for n in pairs(targets) do
    activate(n)
  end
  ring_woken()
end

local function deactivate(n, org)
  local ready = P .. 'ready:' .. org
  call('ZREM', ready, n)
  if call('EXISTS', ready) == 0 then
    call('ZREM', P .. 'ready' .. mark_of(org), org)
  end
end

-- Wakes up to `count` targets of a limiter; returns how many.
local wake
do
  local function wake_target(n)
    call('HDEL', P .. 't:' .. n, F.target.blocked_by)
    activate(n)
  end

  local function wait_again(n, key)
    call('ZADD', key, integer(counter()), n)
  end

  function wake(limiter, count)
    local key = P .. 'wait:' .. limiter
    local woken = call('ZPOPMIN', key, count)
    for k = 1, #woken, 2 do
      apart.run(wake_target, wait_again, woken[k], key)
    end
    if call('EXISTS', key) == 0 then
      call('ZREM', P .. 'waiting', limiter)
    end
    return #woken / 2
  end
end

-- Takes a target out of what it waits for.
local function unblock(n, limiter)
  call('HDEL', P .. 't:' .. n, F.target.blocked_by)
  call('ZREM', P .. 'wait:' .. limiter, n)
  if call('EXISTS', P .. 'wait:' .. limiter) == 0 and limiter ~= '!' then
    call('ZREM', P .. 'waiting', limiter)
  end
end

-- How many entries a lane has, read or not; none when what is there is no stream.
local function lane_length(lane)
  local length = redis.pcall('XLEN', P .. 'w:' .. lane)
  return failed(length) and 0 or length
end

-- The same for both lanes of a target.
local function queued(n)
  local length = lane_length(n)
  if call('HEXISTS', P .. 't:' .. n, F.target.has_retry_lane) == 1 then
    length = length + lane_length(retry_lane(n))
  end
  return length
end

-- Removes what is drained of a target's lanes; returns how many entries are left. `has_retries`: F.target.has_retry_lane as HMGET returns it, if it was read.
local function remove_drained(n, has_retries)
  local fresh = lane_length(n)
  if fresh == 0 then
    call('DEL', P .. 'w:' .. n)
  end
  if has_retries == nil then
    has_retries = call('HEXISTS', P .. 't:' .. n, F.target.has_retry_lane) == 1
  end
  if not has_retries then
    return fresh
  end
  local retries = lane_length(retry_lane(n))
  if retries == 0 then
    call('DEL', P .. 'w:' .. retry_lane(n))
    call('HDEL', P .. 't:' .. n, F.target.has_retry_lane)
  end
  return fresh + retries
end

-- After work of the target ended or came back: removes drained lanes, and brings a target at its cap back to `ready`.
local function settle_target(n)
  local t = call('HMGET', P .. 't:' .. n, F.target.has_retry_lane, F.target.blocked_by)
  local left = remove_drained(n, t[1])
  if t[2] == 'cap' then
    call('HDEL', P .. 't:' .. n, F.target.blocked_by)
    if left > 0 then
      activate(n)
    end
  end
end
