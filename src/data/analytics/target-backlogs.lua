#!lua flags=no-writes
-- What waits at some targets.
--
-- KEYS: see ../shard/includes/shard.lua. ARGV: numbers of targets, at most 200.
-- Reply: {messages that wait or are under way (each batch that is tried again is one), when the oldest of those in the lanes was accepted (ms) or '',
-- messages that are scheduled for a later time, which are none of the first}.
-- Retries whose time has not come are in no lane.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/accepted-time.lua"
-- @include "../shard/includes/target.lua"

local backlog, oldest, scheduled = 0, '', 0

local function look_at(lane)
  local length = lane_length(lane)
  local entry = length > 0 and redis.pcall('XRANGE', P .. 'w:' .. lane, '-', '+', 'COUNT', 1)
  local id = entry and not failed(entry) and entry[1] and entry[1][2][2]
  backlog = backlog + length
  local accepted = id and accepted_ms(id)
  if accepted and (oldest == '' or accepted < oldest) then
    oldest = accepted
  end
end

local waiting = call('HMGET', P .. 'retries', unpack(ARGV))
local scheduled_of = call('HMGET', P .. 'scheduled', unpack(ARGV))
for k, n in ipairs(ARGV) do
  local of_target = tonumber(scheduled_of[k] or '0')
  scheduled = scheduled + of_target
  backlog = backlog + math.max(0, tonumber(waiting[k] or '0') - of_target)
  look_at(n)
  if call('HEXISTS', P .. 't:' .. n, 'rl') == 1 then
    look_at(retry_lane(n))
  end
end
return { backlog, oldest, scheduled }
