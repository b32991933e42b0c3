#!lua flags=allow-oom
-- Moves what is due: retries into the lanes of their targets, waiting targets into `ready`, open circuits whose cooldown is over
-- to half-open; at most 100 and 16 of them per call. Ends messages that have expired, at most 100.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] how long (ms) a message may wait for an open circuit before it goes to a failover destination or to the dead letters, [2] the mark of the worker's pool.
-- Reply: {hints, how many were moved}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/limiter.lua"
-- @include "includes/shared-limiter.lua"
-- @include "includes/circuit.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/retries.lua"
-- @include "includes/overflow.lua"
-- @include "includes/waits.lua"
-- @include "includes/ring-pools.lua"
-- @include "includes/expire.lua"
-- @include "../shard/includes/hints.lua"
-- @include "includes/expiry.lua"
-- @include "includes/queue-room.lua"

-- By then those that a shared limiter woke have come to dequeue, unless all workers are full.
local wake_again_ms = 20
local longest_circuit_wait_ms = tonumber(ARGV[1])
local moved = 0
-- By target: whether its lane of retries takes entries.
local usable = {}
local has_new = {}

local function queue_scheduled(n, id, expires)
  local t = call('HMGET', P .. 't:' .. n, 'o', 'd')
  if not overflow(id, n, t[1] or '', t[2] or '') then
    enqueue(n, id, expires)
    use_room(t[2])
  end
end

for _, retry in ipairs(take_due(100)) do
  local n, id = retry[1], retry[2]
  if usable[n] == nil then
    usable[n] = not failed(redis.pcall('XLEN', P .. 'w:' .. retry_lane(n)))
  end
  has_new[n] = usable[n] or nil
  local m = usable[n] and call('HMGET', P .. 'm:' .. id, 's', 'xp')
  if m and m[1] and not expiry.has_ended(m[1]) then
    if m[1] == 'p' then
      scheduled.count_out(n)
      queue_scheduled(n, id, m[2])
    else
      enqueue_retry(n, id, m[2])
    end
    moved = moved + 1
  end
end
for n in pairs(has_new) do
  activate(n)
end

-- Wakes only as many targets as a shared limiter has room for; those that it woke just before have not used theirs yet.
local function wake_shared(name)
  local limiter = shared_limiter(name)
  local room, at = shared_room(limiter)
  if room == 0 then
    return 0, math.max(at, now + 1)
  end
  local count = math.max(0, math.min(64, room - limiter.woken))
  if count > 0 then
    count = math.min(count, call('ZCARD', P .. 'wait:' .. name))
    limiter.woken, limiter['until'], limiter.is_changed = limiter.woken + count, now + woken_ms, true
  end
  return count, now + wake_again_ms
end

-- Wakes only as many targets as the limiter has tokens or leases for.
local function wake_limiter(limiter)
  local l = call('HMGET', P .. 'l:' .. limiter, 'e', 'u', 'c', 'w')
  local count, again = 64, now + 1000
  if l[4] then
    count, again = wake_shared(limiter)
  end
  if l[1] then
    local tokens, wait_us = rate_peek(limiter, tonumber(l[1]), tonumber(l[2]))
    count = math.min(count, tokens)
    again = now + math.max(1, math.ceil((tokens > 0 and tonumber(l[1]) or wait_us) / 1000))
  end
  if l[3] then
    local free, at = lease_peek(limiter, tonumber(l[3]))
    count = math.min(count, free)
    again = math.max(again, at)
  end
  if count > 0 then
    moved = moved + wake(limiter, count)
  end
  if call('EXISTS', P .. 'wait:' .. limiter) == 1 then
    call('ZADD', P .. 'waiting', again, limiter)
  else
    call('ZREM', P .. 'waiting', limiter)
  end
end

-- Returns whether there may be more.
local function expire_circuit_waits(n, org, began, fo)
  local _, more = expire_waits(n, org, began, longest_circuit_wait_ms, 'circuit_breaker_exhausted', { fo = fo })
  return more
end

local function wake_circuit(n)
  local t = call('HMGET', P .. 't:' .. n, 'cs', 'cu', 'o', 'co', 'fo')
  if t[1] ~= 'o' then
    call('ZREM', P .. 'waiting', '!' .. n)
  elseif expire_circuit_waits(n, t[3], tonumber(t[4] or whole(now)), t[5]) then
    call('ZADD', P .. 'waiting', now, '!' .. n)
  elseif tonumber(t[2]) > now then
    call('ZADD', P .. 'waiting', t[2], '!' .. n)
    -- A failover destination may have room by now.
    if t[5] and circuit_release(n) then
      moved = moved + 1
    end
  else
    call('ZREM', P .. 'waiting', '!' .. n)
    circuit_begin(n, 'h')
    if circuit_release(n) then
      moved = moved + 1
    end
  end
end

for _, limiter in ipairs(call('ZRANGEBYSCORE', P .. 'waiting', '-inf', now, 'LIMIT', 0, 16)) do
  local n = string.match(limiter, '^!(%d+)$')
  if n then
    wake_circuit(n)
  elseif limiter == expiry.mark then
    moved = moved + expire_messages()
  else
    wake_limiter(limiter)
  end
end
write_shared_limiters()
write_counts()
write_status_counts()
write_unfinished()
ring_woken()
ring_ready()
hints.ready, hints.due = call('EXISTS', P .. 'ready' .. ARGV[2]), next_due_ms()
return { hints.reply(), moved }
