#!lua flags=allow-oom
-- Empties the queue of a target whose route or destination is gone. A message moves to a failover destination that is free. One that came from another
-- destination may move back there. All others become dead letters. At most 100 messages per call. Workers settle what they hold.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] target, [2] reason, [3] `<` and the failover destinations as in configure.lua, separated by spaces; '' where the route is gone.
-- Reply: {hints, how many became dead letters, 1 when there is more, 1 when retries of the target wait for their time}. A message that an error keeps from
-- leaving stays, and so does the target; the others leave.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/lanes.lua"
-- @include "includes/leave.lua"
-- @include "../shard/includes/hints.lua"
-- @include "includes/has-left.lua"
-- @include "../shard/includes/apart.lua"

local n, reason = ARGV[1], ARGV[2]
local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.blocked_by, F.target.route, F.target.in_order)
local org, blocked = t[1], t[2]
if not org then
  return { hints.reply(), 0, 0, 0 }
end
-- From a target whose messages go out in order none moves.
local way_out = not t[4] and failover_of_names(org, t[3], ARGV[3]) or nil
local dropped, is_empty = 0, true
local budget = 100
local function drop_entry(lane, entry)
  if remove_after(lane, entry, has_left, leave, entry[2][2], n, org, reason, way_out) then
    dropped = dropped + 1
  end
end
local function stays()
  is_empty = false
end
local function drop_lane(lane)
  local entries = unread(lane, budget)
  for _, entry in ipairs(entries) do
    apart.run(drop_entry, stays, lane, entry)
  end
  budget = budget - #entries
end
drop_lane(n)
if budget > 0 and call('HEXISTS', P .. 't:' .. n, F.target.has_retry_lane) == 1 then
  drop_lane(retry_lane(n))
end
if budget > 0 and is_empty then
  deactivate(n, org)
  call('HDEL', P .. 't:' .. n, F.target.paused_since_ms, F.target.blocked_by, F.target.revision, F.target.circuit_state,
    F.target.consecutive_failures, F.target.successful_probes, F.target.cooldown_end_ms, F.target.outage_began_ms, F.target.ramp_began_ms,
    F.target.failover_targets, F.target.failover_after, F.target.has_alerts, F.target.shared_limiter, F.target.moves_on, F.target.seen_fresh_entry,
    F.target.seen_retry_entry, F.target.paused_for, F.target.has_own_events, F.target.noted_disabled, F.target.noted_disabling,
    F.target.failover_awaited)
  call('SREM', P .. 'paused', n)
  call('SREM', P .. 'broken', n)
  call('ZREM', P .. 'waiting', '!' .. n)
  if blocked and blocked ~= 'cap' and blocked ~= '!' then
    call('ZREM', P .. 'wait:' .. blocked, n)
    if call('EXISTS', P .. 'wait:' .. blocked) == 0 then
      call('ZREM', P .. 'waiting', blocked)
    end
  end
  remove_drained(n)
end
counters.write()
write_status_counts()
write_unfinished()
ring_woken()
return apart.reply({ hints.reply(), dropped, budget == 0 and 1 or 0, call('HEXISTS', P .. 'retries', n) })
