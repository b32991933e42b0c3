#!lua flags=allow-oom
-- Sets what dequeue must know of a target: the throttle of its limiter, its circuit and
-- failover, or that it is paused.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] target, [2] revision of the setting, [3] 1: paused, 0: not, [4] emission interval in µs or '', [5] burst or '',
-- [6] largest concurrency or '', [7] largest number of queued messages of the destination or '', [8] priority, [9] failures that
-- open the circuit, [10] cooldown in ms, [11] successes that close it, [12] failed attempts before failover or '',
-- [13] layout of the objects of a target whose messages go out in batches, or '', [14] records, [15] bytes and [16] age in ms at which a
-- batch is complete, [17] 1: the route has alerts, 0: not, [18] the limiter that the target shares with others or '', [19] the revision
-- of its windows and [20] these (shared-limiter.lua), [21] whose messages move on because the target does not serve (failover.lua) or '',
-- [22] why it is paused or does not serve, or '', [23] 1: its organization receives Posthorn's own events, 0: not,
-- [24] 1: its messages go out in order (order.lua), 0: not, '': as before, [25] failover destinations that do not serve yet, separated by spaces, or ''; then the failover destinations in order, those of other shards as `<shard>/<destination>`.
-- Reply: 1; 2 when its messages move on and some of them wait for their next attempt; 0 when there is no such target.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/intern.lua"
-- @include "includes/limiter.lua"
-- @include "includes/shared-windows.lua"
-- @include "includes/ring-pools.lua"
-- @include "includes/waiting.lua"

local n = ARGV[1]
local key = P .. 't:' .. n
local t = call('HMGET', key, F.target.organization, F.target.destination, F.target.blocked_by, F.target.paused_since_ms, F.target.route,
  F.target.circuit_state, F.target.circuit_began_ms, F.target.cooldown_ms, F.target.in_order)
local org, destination, blocked, was_paused, route = t[1], t[2], t[3], t[4], t[5]
if not org then
  return 0
end

-- The limiter.
local limiter = P .. 'l:' .. destination
local numbers = call('HGET', limiter, F.limiter.targets)
call('DEL', limiter)
if ARGV[4] ~= '' then
  call('HSET', limiter, F.limiter.emission_us, ARGV[4], F.limiter.burst, ARGV[5])
  rate_adapt(destination, tonumber(ARGV[4]), tonumber(ARGV[5]))
end
if ARGV[6] ~= '' then
  call('HSET', limiter, F.limiter.concurrency, ARGV[6])
end
if ARGV[7] ~= '' then
  numbers = numbers or n
  if not string.find(' ' .. numbers .. ' ', ' ' .. n .. ' ', 1, true) then
    numbers = numbers .. ' ' .. n
  end
  call('HSET', limiter, F.limiter.max_queued, ARGV[7], F.limiter.targets, numbers)
end

call('HSET', key, F.target.revision, ARGV[2], F.target.failure_threshold, ARGV[9], F.target.cooldown_ms, ARGV[10], F.target.success_threshold,
  ARGV[11])
call('HDEL', key, F.target.failover_targets, F.target.failover_after, F.target.priority, F.target.has_alerts, F.target.shared_limiter,
  F.target.moves_on, F.target.seen_fresh_entry, F.target.seen_retry_entry, F.target.paused_for, F.target.has_own_events, F.target.in_order,
  F.target.failover_awaited)
if ARGV[13] ~= '' then
  call('HSET', key, F.target.batch_layout, ARGV[13], F.target.batch_records, ARGV[14], F.target.batch_bytes, ARGV[15], F.target.batch_age_ms,
    ARGV[16])
end
if ARGV[8] ~= '0' then
  call('HSET', key, F.target.priority, ARGV[8])
end
if ARGV[17] == '1' then
  call('HSET', key, F.target.has_alerts, '1')
end
if ARGV[23] == '1' then
  call('HSET', key, F.target.has_own_events, '1')
end
local was_ordered = t[9]
local is_ordered = ARGV[24] == '1' or ARGV[24] == '' and was_ordered
if is_ordered then
  call('HSET', key, F.target.in_order, '1')
  call('SADD', P .. 'ordered', n)
elseif was_ordered then
  call('SREM', P .. 'ordered', n)
end
if ARGV[18] ~= '' then
  call('HSET', key, F.target.shared_limiter, ARGV[18])
  set_windows(ARGV[18], ARGV[19], ARGV[20])
end
if ARGV[21] ~= '' then
  call('HSET', key, F.target.moves_on, ARGV[21])
end
if ARGV[22] ~= '' then
  call('HSET', key, F.target.paused_for, ARGV[22])
end
-- The outage that has begun ends by the new cooldown.
if t[6] == 'o' and t[7] and t[8] ~= ARGV[10] then
  local ends = whole(tonumber(t[7]) + tonumber(ARGV[10]))
  call('HSET', key, F.target.cooldown_end_ms, ends)
  waiting.add('!' .. n, org, ends)
end
if ARGV[25] ~= '' then
  call('HSET', key, F.target.failover_awaited, ARGV[25])
end
local failover = {}
for k = 26, #ARGV do
  local is_elsewhere = string.find(ARGV[k], '/', 1, true)
  failover[#failover + 1] = is_elsewhere and ARGV[k] or intern(org, route, ARGV[k])
end
if #failover > 0 then
  call('HSET', key, F.target.failover_targets, table.concat(failover, ' '))
  if ARGV[12] ~= '' then
    call('HSET', key, F.target.failover_after, ARGV[12])
  end
end

if blocked == '?' .. n then
  wake(blocked, 1)
elseif ARGV[21] ~= '' and blocked then
  -- What keeps a message from being sent does not keep it from moving on.
  unblock(n, blocked)
elseif blocked == '!' and #failover > 0 then
  call('HDEL', key, F.target.blocked_by)
elseif was_ordered and not is_ordered and (blocked == 'cap' or blocked == '~o' .. n) then
  -- Earlier messages hold it up no longer.
  unblock(n, blocked)
elseif call('EXISTS', P .. 'wait:' .. destination) == 1 then
  waiting.add(destination, org, now)
end
if ARGV[3] == '1' then
  call('HSET', key, F.target.paused_since_ms, was_paused and was_paused ~= '1' and was_paused or whole(now))
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
return ARGV[21] ~= '' and call('HEXISTS', P .. 'retries', n) == 1 and 2 or 1
