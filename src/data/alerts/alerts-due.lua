#!lua flags=no-writes
-- Names routes whose alerts have to be looked at now.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] how many at most.
-- Reply: {routes; ms until the next of the others, -1: there is none}.
-- @include "../shard/includes/shard.lua"

local due = call('ZRANGEBYSCORE', P .. 'alerts', '-inf', now, 'LIMIT', 0, ARGV[1])
local next = call('ZRANGEBYSCORE', P .. 'alerts', '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return { due, next[2] and math.ceil(tonumber(next[2]) - now) or -1 }
