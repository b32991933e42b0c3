#!lua flags=allow-oom
-- Moves what is due: retries into the lanes of their targets, at most 100; waiting targets into `ready`, and open circuits whose cooldown is over
-- to half-open, at most 16. Organizations take turns. Ends messages that have expired, at most 100.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] how long (ms) a message may wait for an open circuit before it goes to a failover destination or to the dead letters, [2] the mark of the worker's pool.
-- Reply: {hints, how many were moved}. An error that ends one of them leaves the others as they are without it: that one comes again a second later.
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
-- @include "includes/queue-capacity.lua"
-- @include "includes/waiting.lua"
-- @include "../shard/includes/apart.lua"
-- @include "includes/has-left.lua"

-- By then those that a shared limiter woke have come to dequeue, unless all workers are full.
local wake_again_ms = 20
local longest_circuit_wait_ms = tonumber(ARGV[1])
local moved = 0
-- By target: whether its lane of retries takes entries.
local usable = {}
local has_new = {}
-- Messages whose first attempt has come due.
local is_scheduled = {}

local function queue_scheduled(n, id, expires)
  is_scheduled[id] = true
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.destination)
  local destination = t[2] or ''
  if not (is_queue_full(destination) and overflow(id, n, t[1] or '', destination)) then
    enqueue(n, id, expires)
    use_room(t[2])
  end
  retries.count_scheduled_out(n)
end

local function move_due(n, id)
  if usable[n] == nil then
    usable[n] = not failed(redis.pcall('XLEN', P .. 'w:' .. retry_lane(n)))
  end
  has_new[n] = usable[n] or nil
  local m = usable[n] and call('HMGET', P .. 'm:' .. id, F.message.status, F.message.expires_ms)
  if m and m[1] and not expiry.has_ended(m[1]) then
    if m[1] == 'p' then
      queue_scheduled(n, id, m[2])
    else
      enqueue_retry(n, id, m[2])
    end
    moved = moved + 1
  end
end

local function put_back_retry(n, id)
  if has_left(id) then
    if is_scheduled[id] then
      pcall(retries.count_scheduled_out, n)
    end
  else
    retries.put_back(n, id)
  end
end

local function nothing_to_put_back() end

for _, retry in ipairs(retries.take_due(100)) do
  apart.run(move_due, put_back_retry, retry[1], retry[2])
end
for n in pairs(usable) do
  retries.forget_scheduled(n)
end
for n in pairs(has_new) do
  apart.run(activate, nothing_to_put_back, n)
end

-- Wakes only as many targets as a shared limiter has room for; those that it woke just before have not used theirs yet.
local function wake_shared(name)
  local limiter = shared_limiters.of(name)
  local room, at = shared_limiters.room(limiter)
  if room == 0 then
    return 0, math.max(at, now + 1)
  end
  local count = math.max(0, math.min(64, room - limiter.woken))
  if count > 0 then
    count = math.min(count, call('ZCARD', P .. 'wait:' .. name))
    limiter.woken, limiter['until'], limiter.is_changed = limiter.woken + count, now + shared_limiters.woken_ms, true
  end
  return count, now + wake_again_ms
end

-- Wakes only as many targets as the limiter has tokens or leases for.
local function wake_limiter(limiter)
  local l = call('HMGET', P .. 'l:' .. limiter, F.limiter.emission_us, F.limiter.burst, F.limiter.concurrency, F.limiter.windows)
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
    waiting.add(limiter, nil, again)
  end
end

-- Waits for circuits that this call may still end, of all circuits together; the rest follows with later calls.
local circuit_ends_left = 200

-- Returns whether there may be more.
local function expire_circuit_waits(n, org, began, fo)
  if circuit_ends_left <= 0 then
    return now - began >= longest_circuit_wait_ms
  end
  local expired, more = expire_waits(n, org, began, longest_circuit_wait_ms, 'circuit_breaker_exhausted', { fo = fo })
  circuit_ends_left = circuit_ends_left - expired
  return more
end

local function wake_circuit(n)
  local t = call('HMGET', P .. 't:' .. n, F.target.circuit_state, F.target.cooldown_end_ms, F.target.organization, F.target.outage_began_ms,
    F.target.failover_targets)
  if t[1] ~= 'o' then
    return
  elseif expire_circuit_waits(n, t[3], tonumber(t[4] or integer(now)), t[5]) then
    waiting.add('!' .. n, t[3], now)
  elseif tonumber(t[2]) > now then
    waiting.add('!' .. n, t[3], t[2])
    -- A failover destination may have room by now.
    if t[5] and circuit_release(n) then
      moved = moved + 1
    end
  else
    circuit_begin(n, 'h')
    if circuit_release(n) then
      moved = moved + 1
    end
  end
end

local function work_off(name)
  local n = string.match(name, '^!(%d+)$')
  if n then
    wake_circuit(n)
  elseif name == expiry.mark then
    moved = moved + expire_messages()
  else
    wake_limiter(name)
  end
end

local function put_back_name(name)
  waiting.add(name, nil, integer(now + apart.again_ms))
end

for _, name in ipairs(waiting.take(16)) do
  apart.run(work_off, put_back_name, name)
end
shared_limiters.write()
counters.write()
write_status_counts()
write_unfinished()
ring_woken()
ring_ready()
hints.ready, hints.due = call('EXISTS', P .. 'ready' .. ARGV[2]), next_due_ms()
return apart.reply({ hints.reply(), moved })
