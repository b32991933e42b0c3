-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "lanes.lua"
-- @include "failover.lua"
-- @include "expiry.lua"
-- @include "has-left.lua"
-- @include "bury.lua"

-- Moves a message that has waited too long to a failover target, or ends it.
local function end_wait(n, id, org, reason, options)
  local moves = options.fo and failover.moves_of(id)
  local place = moves and failover.candidate(moves, options.fo, 'refused')
  if place then
    failover.move(moves, n, place, 'circuit_open')
  else
    bury(id, org, reason, options.error_type)
  end
end

-- Ends the wait of messages of target n that have waited since `began` (ms), or since they were queued or due, for longer than `longest_ms`, at most 100
-- per lane: they go to one of the failover targets `options.fo`, if there are any and one is free, else to the dead letters, with `options.error_type` if it is
-- given. Returns how many, and whether there may be more.
local function expire_waits(n, org, began, longest_ms, reason, options)
  local expired = 0
  if now - began < longest_ms then
    return expired, false
  end
  local function expire(lane)
    for _ = 1, 100 do
      local entry = unread(lane, 1)[1]
      if not entry then
        return false
      end
      local id = entry[2][2]
      local m = call('HMGET', P .. 'm:' .. id, F.message.due_ms, F.message.index_stamp, F.message.status)
      local queued_ms = tonumber(m[1] or string.match(m[2] or '', '^(%d+)') or '0')
      if now - math.max(began, queued_ms) < longest_ms then
        return false
      end
      if m[2] and not expiry.has_ended(m[3]) then
        remove_after(lane, entry, has_left, end_wait, n, id, org, reason, options)
      else
        remove_entry(lane, entry[1])
      end
      expired = expired + 1
    end
    return true
  end
  local more = expire(n)
  if call('HEXISTS', P .. 't:' .. n, F.target.has_retry_lane) == 1 and expire(retry_lane(n)) then
    more = true
  end
  remove_drained(n)
  return expired, more
end
