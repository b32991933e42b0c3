#!lua flags=no-writes
-- How many organizations of a pool have an archive that is to be written now and that nobody writes.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] mark of the pool (../shard/includes/pools.lua), [2] how many of all that are due to pass over, [3] most to look at.
-- Reply: {how many of those looked at, 1 when there are more to look at}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/pools.lua"

local found = call('ZRANGE', P .. 'az', '-inf', now, 'BYSCORE', 'LIMIT', ARGV[2], ARGV[3])
local count = 0
for _, org in ipairs(found) do
  if mark_of(org) == ARGV[1] and call('HEXISTS', P .. 'arc', org) == 1 then
    count = count + 1
  end
end
return { count, #found == tonumber(ARGV[3]) and 1 or 0 }
