#!lua flags=allow-oom
-- Stores the setting of a target for dequeue: the throttle of its limiter, its circuit and failover, or that it is paused.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts):
--   target, revision of the setting, is_paused, priority
--   emission_us and burst, concurrency, max_queued: limits of the destination, each absent where there is none
--   failure_threshold, cooldown_ms, success_threshold: of the circuit
--   batch {layout, records, bytes, age_ms}: its messages go out in batches
--   has_alerts: its route has alerts; has_own_events: its organization receives Posthorn's own events
--   shared_limiter {id, revision, windows}: it shares one (shared-limiter.lua)
--   moves_on (F.target.moves_on), paused_for (F.target.paused_for): if they apply
--   in_order: its messages go out in order (order.lua); absent: as before
--   failover {targets in order, those of other shards as `<shard>/<destination>`; awaited: destinations that do not serve yet; after_attempts}
-- Reply: {hints, code}. Codes:
--   0  The target does not exist.
--   1  The setting is in force.
--   2  The setting is in force, the messages of the target move on, and some of them wait for their next attempt.
--   3  The setting is not in force yet, because one script cannot move all messages that exceed the queue. The worker calls the script again.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/hints.lua"
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/intern.lua"
-- @include "includes/excess.lua"
-- @include "includes/limiter.lua"
-- @include "includes/shared-windows.lua"
-- @include "includes/ring-pools.lua"
-- @include "includes/waiting.lua"

local setting = decoded(ARGV[1])
local n = setting.target
local key = P .. 't:' .. n
local t = call('HMGET', key, F.target.organization, F.target.destination, F.target.blocked_by, F.target.paused_since_ms, F.target.route,
  F.target.circuit_state, F.target.circuit_began_ms, F.target.cooldown_ms, F.target.in_order, F.target.revision)
local org, destination, blocked, was_paused, route = t[1], t[2], t[3], t[4], t[5]
if not org then
  return { hints.reply(), 0 }
end

-- The limiter.
local limiter = P .. 'l:' .. destination
local numbers = call('HGET', limiter, F.limiter.targets)
call('DEL', limiter)
if setting.emission_us then
  call('HSET', limiter, F.limiter.emission_us, setting.emission_us, F.limiter.burst, setting.burst)
  rate_adapt(destination, setting.emission_us, setting.burst)
end
if setting.concurrency then
  call('HSET', limiter, F.limiter.concurrency, setting.concurrency)
end
if setting.max_queued then
  numbers = numbers or n
  if not string.find(' ' .. numbers .. ' ', ' ' .. n .. ' ', 1, true) then
    numbers = numbers .. ' ' .. n
  end
  call('HSET', limiter, F.limiter.max_queued, setting.max_queued, F.limiter.targets, numbers)
end

local cooldown_ms = integer(setting.cooldown_ms)
call('HSET', key, F.target.failure_threshold, setting.failure_threshold, F.target.cooldown_ms, cooldown_ms, F.target.success_threshold,
  setting.success_threshold)
call('HDEL', key, F.target.failover_targets, F.target.failover_after, F.target.priority, F.target.has_alerts, F.target.shared_limiter,
  F.target.moves_on, F.target.seen_fresh_entry, F.target.seen_retry_entry, F.target.paused_for, F.target.has_own_events, F.target.in_order,
  F.target.failover_awaited)
local batch = setting.batch
if batch then
  call('HSET', key, F.target.batch_layout, batch.layout, F.target.batch_records, batch.records, F.target.batch_bytes, batch.bytes,
    F.target.batch_age_ms, batch.age_ms)
end
if setting.priority ~= 0 then
  call('HSET', key, F.target.priority, setting.priority)
end
if setting.has_alerts then
  call('HSET', key, F.target.has_alerts, '1')
end
if setting.has_own_events then
  call('HSET', key, F.target.has_own_events, '1')
end
local was_ordered = t[9]
local is_ordered = setting.in_order or setting.in_order == nil and was_ordered
if is_ordered then
  call('HSET', key, F.target.in_order, '1')
  call('SADD', P .. 'ordered', n)
elseif was_ordered then
  call('SREM', P .. 'ordered', n)
end
local shared = setting.shared_limiter
if shared then
  call('HSET', key, F.target.shared_limiter, shared.id)
  set_windows(shared.id, shared.revision, shared.windows)
end
if setting.moves_on then
  call('HSET', key, F.target.moves_on, setting.moves_on)
end
if setting.paused_for then
  call('HSET', key, F.target.paused_for, setting.paused_for)
end
-- The outage that has begun ends by the new cooldown.
if t[6] == 'o' and t[7] and t[8] ~= cooldown_ms then
  local ends = integer(tonumber(t[7]) + setting.cooldown_ms)
  call('HSET', key, F.target.cooldown_end_ms, ends)
  waiting.add('!' .. n, org, ends)
end
if #setting.failover.awaited > 0 then
  call('HSET', key, F.target.failover_awaited, table.concat(setting.failover.awaited, ' '))
end
local places = {}
for k, name in ipairs(setting.failover.targets) do
  local is_elsewhere = string.find(name, '/', 1, true)
  places[k] = is_elsewhere and name or intern(org, route, name)
end
if #places > 0 then
  call('HSET', key, F.target.failover_targets, table.concat(places, ' '))
  if setting.failover.after_attempts then
    call('HSET', key, F.target.failover_after, setting.failover.after_attempts)
  end
end

-- The messages that came first came before the limit was known.
if not t[10] and setting.max_queued and not setting.moves_on and #places > 0 and move_excess(n, destination, table.concat(places, ' ')) then
  return { hints.reply(), 3 }
end

if blocked == '?' .. n then
  wake(blocked, 1)
elseif setting.moves_on and blocked then
  -- What keeps a message from being sent does not keep it from moving on.
  unblock(n, blocked)
elseif blocked == '!' and #places > 0 then
  call('HDEL', key, F.target.blocked_by)
elseif was_ordered and not is_ordered and (blocked == 'cap' or blocked == '~o' .. n) then
  -- Earlier messages hold it up no longer.
  unblock(n, blocked)
elseif call('EXISTS', P .. 'wait:' .. destination) == 1 then
  waiting.add(destination, org, now)
end
if setting.is_paused then
  call('HSET', key, F.target.paused_since_ms, was_paused and was_paused ~= '1' and was_paused or integer(now))
  call('SADD', P .. 'paused', n)
  deactivate(n, org)
else
  call('HDEL', key, F.target.paused_since_ms)
  call('SREM', P .. 'paused', n)
  if was_paused then
    call('HSET', key, F.target.ramp_began_ms, now)
  end
  if queued(n) > 0 then
    activate(n)
    ring_woken()
    ring_ready()
  end
end
-- The script writes the revision last. The setting is in force once the revision is written. After an earlier error, a worker calls the script again.
call('HSET', key, F.target.revision, setting.revision)
return { hints.reply(), setting.moves_on and call('HEXISTS', P .. 'retries', n) == 1 and 2 or 1 }
