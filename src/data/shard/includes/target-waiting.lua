-- @include "accepted-time.lua"
-- @include "shard.lua"
-- @include "target.lua"

-- What waits at a target or is under way there (each batch that is tried again is one), when the oldest of those in the lanes was accepted (ms; nil: none
-- is there), and what is scheduled for a later time, which is none of the first. Retries whose time has not come are in no lane.
local function target_waiting(n)
  local scheduled = tonumber(call('HGET', P .. 'scheduled', n) or '0')
  local backlog, oldest = math.max(0, tonumber(call('HGET', P .. 'retries', n) or '0') - scheduled), nil
  local function count_lane(lane)
    local length = lane_length(lane)
    local entry = length > 0 and redis.pcall('XRANGE', P .. 'w:' .. lane, '-', '+', 'COUNT', 1)
    local id = entry and not failed(entry) and entry[1] and entry[1][2][2]
    local accepted = id and accepted_ms(id)
    backlog = backlog + length
    if accepted and (not oldest or accepted < oldest) then
      oldest = accepted
    end
  end
  count_lane(n)
  if call('HEXISTS', P .. 't:' .. n, F.target.has_retry_lane) == 1 then
    count_lane(retry_lane(n))
  end
  return backlog, oldest, scheduled
end
