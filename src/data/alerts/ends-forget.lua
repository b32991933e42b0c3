#!lua flags=allow-oom
-- Removes entries of the log of ends that have been dealt with.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV: the entries.
-- Reply: how many were there.
-- @include "../shard/includes/shard.lua"

local count = call('XDEL', P .. 'ends', unpack(ARGV))
if call('XLEN', P .. 'ends') == 0 then
  call('DEL', P .. 'ends', P .. 'ends-of')
end
return count
