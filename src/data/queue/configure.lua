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
-- of its windows and [20] these (shared-limiter.lua), [21] whose messages move on because the target does not serve (mv in failover.lua) or '',
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
local t = call('HMGET', key, 'o', 'd', 'b', 'p', 'r', 'cs', 'ca', 'sc', 'io')
local org, destination, blocked, was_paused, route = t[1], t[2], t[3], t[4], t[5]
if not org then
  return 0
end

-- The limiter; t: its targets, whose queues together must not exceed q.
local limiter = P .. 'l:' .. destination
local numbers = call('HGET', limiter, 't')
call('DEL', limiter)
if ARGV[4] ~= '' then
  call('HSET', limiter, 'e', ARGV[4], 'u', ARGV[5])
  rate_adapt(destination, tonumber(ARGV[4]), tonumber(ARGV[5]))
end
if ARGV[6] ~= '' then
  call('HSET', limiter, 'c', ARGV[6])
end
if ARGV[7] ~= '' then
  numbers = numbers or n
  if not string.find(' ' .. numbers .. ' ', ' ' .. n .. ' ', 1, true) then
    numbers = numbers .. ' ' .. n
  end
  call('HSET', limiter, 'q', ARGV[7], 't', numbers)
end

call('HSET', key, 'g', ARGV[2], 'st', ARGV[9], 'sc', ARGV[10], 'sp', ARGV[11])
call('HDEL', key, 'fo', 'fa', 'pr', 'al', 'lp', 'mv', 'gl', 'gr', 'pw', 'oe', 'io', 'fw')
if ARGV[13] ~= '' then
  call('HSET', key, 'bt', ARGV[13], 'bn', ARGV[14], 'bb', ARGV[15], 'ba', ARGV[16])
end
if ARGV[8] ~= '0' then
  call('HSET', key, 'pr', ARGV[8])
end
if ARGV[17] == '1' then
  call('HSET', key, 'al', '1')
end
if ARGV[23] == '1' then
  call('HSET', key, 'oe', '1')
end
local was_ordered = t[9]
local is_ordered = ARGV[24] == '1' or ARGV[24] == '' and was_ordered
if is_ordered then
  call('HSET', key, 'io', '1')
  call('SADD', P .. 'ordered', n)
elseif was_ordered then
  call('SREM', P .. 'ordered', n)
end
if ARGV[18] ~= '' then
  call('HSET', key, 'lp', ARGV[18])
  set_windows(ARGV[18], ARGV[19], ARGV[20])
end
if ARGV[21] ~= '' then
  call('HSET', key, 'mv', ARGV[21])
end
if ARGV[22] ~= '' then
  call('HSET', key, 'pw', ARGV[22])
end
-- The outage that has begun ends by the new cooldown.
if t[6] == 'o' and t[7] and t[8] ~= ARGV[10] then
  local ends = whole(tonumber(t[7]) + tonumber(ARGV[10]))
  call('HSET', key, 'cu', ends)
  waiting.add('!' .. n, org, ends)
end
if ARGV[25] ~= '' then
  call('HSET', key, 'fw', ARGV[25])
end
local failover = {}
for k = 26, #ARGV do
  local is_elsewhere = string.find(ARGV[k], '/', 1, true)
  failover[#failover + 1] = is_elsewhere and ARGV[k] or intern(org, route, ARGV[k])
end
if #failover > 0 then
  call('HSET', key, 'fo', table.concat(failover, ' '))
  if ARGV[12] ~= '' then
    call('HSET', key, 'fa', ARGV[12])
  end
end

if blocked == '?' .. n then
  wake(blocked, 1)
elseif ARGV[21] ~= '' and blocked then
  -- What keeps a message from being sent does not keep it from moving on.
  unblock(n, blocked)
elseif blocked == '!' and #failover > 0 then
  call('HDEL', key, 'b')
elseif was_ordered and not is_ordered and (blocked == 'cap' or blocked == '~o' .. n) then
  -- Earlier messages hold it up no longer.
  unblock(n, blocked)
elseif call('EXISTS', P .. 'wait:' .. destination) == 1 then
  waiting.add(destination, org, now)
end
if ARGV[3] == '1' then
  call('HSET', key, 'p', was_paused and was_paused ~= '1' and was_paused or whole(now))
  call('SADD', P .. 'paused', n)
  deactivate(n, org)
else
  call('HDEL', key, 'p')
  call('SREM', P .. 'paused', n)
  if was_paused then
    call('HSET', key, 'cr', now)
  end
  if queued(n) > 0 then
    activate(n)
    ring_woken()
    ring_ready()
  end
end
return ARGV[21] ~= '' and call('HEXISTS', P .. 'retries', n) == 1 and 2 or 1
