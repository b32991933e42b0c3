-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"

-- Takes the unread entry of a message of this event out of a lane. Returns whether it was there.
local function leave_lane(lane, entry, event)
  if call('XDEL', P .. 'w:' .. lane, entry) == 0 then
    return false
  end
  local n = number_of_lane(lane)
  local counted = lane == n and call('HMGET', P .. 't:' .. n, F.target.batch_counted_entry, F.target.batch_counted_bytes) or {}
  -- The next batch is without its bytes, if they were counted for it.
  if counted[1] and tonumber(string.match(entry, '^%d+')) <= tonumber(string.match(counted[1], '^%d+')) then
    call('HSET', P .. 't:' .. n, F.target.batch_counted_bytes, math.max(0, tonumber(counted[2] or '0') - call('STRLEN', P .. 'e:' .. event)))
  end
  remove_drained(n)
  return true
end
