#!lua flags=no-writes,allow-oom
-- Which messages of a route have an output of its transform (output.lua).
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] route; then per message itself and its event.
-- Reply: per message 1 or 0.
-- @include "../shard/includes/shard.lua"
-- @include "includes/output.lua"

local reply = {}
for k = 2, #ARGV, 2 do
  local y = call('HGET', P .. 'm:' .. ARGV[k], F.message.has_output)
  reply[#reply + 1] = call('HEXISTS', P .. 'y:' .. ARGV[k + 1], output_field(y or '1', ARGV[1]))
end
return reply
