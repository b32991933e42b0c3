#!lua flags=no-writes
-- Returns how many messages from another shard a failover destination would keep now (receive.lua).
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] organization, [2] route, [3] destination.
-- Reply: the number; there may be room for more than 1000.
-- @include "../shard/includes/shard.lua"
-- @include "includes/queue-capacity.lua"

local max_answered = 1000
local n = call('HGET', P .. 'tn:' .. ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
local t = n and call('HMGET', P .. 't:' .. n, F.target.circuit_state, F.target.moves_on, F.target.success_threshold) or {}
if t[2] or t[1] == 'o' then
  return 0
end
local room = math.min(max_answered, queue_capacity(ARGV[3]) or max_answered)
if t[1] == 'h' then
  -- No more than the probes that are not under way: the others would come back when these fail.
  room = math.min(room, tonumber(t[3] or '1') - call('ZCOUNT', P .. 'probe:' .. n, '(' .. integer(now), '+inf'))
end
return math.max(0, room)
