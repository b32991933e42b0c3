#!lua flags=no-writes
-- Says how large indexes are.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] organization, then indexes (without prefix).
-- Reply: {1 while a batch of the organization has failed, per index how many entries}.
-- @include "includes/shard.lua"

local reply = { call('EXISTS', P .. 'i:batch:' .. ARGV[1]) }
for k = 2, #ARGV do
  local key = P .. ARGV[k]
  local kind = call('TYPE', key).ok
  reply[#reply + 1] = kind == 'stream' and call('XLEN', key) or kind == 'zset' and call('ZCARD', key) or 0
end
return reply
