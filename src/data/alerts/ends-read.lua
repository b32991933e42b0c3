#!lua flags=allow-oom
-- Gives the oldest entries of the log of ends to one reader at a time.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] reader, [2] for how long (ms) it is the only one, [3] how many entries at most.
-- Reply: {0 another reader reads, 1; marker of the shard; entries}.
-- @include "../shard/includes/shard.lua"

if call('EXISTS', P .. 'ends') == 0 then
  return { 1, '', {} }
end
local reader = call('GET', P .. 'ends-reader')
if reader and reader ~= ARGV[1] then
  return { 0, '', {} }
end
call('SET', P .. 'ends-reader', ARGV[1], 'PX', ARGV[2])
return { 1, call('HGET', ctl, F.control.marker) or '', call('XRANGE', P .. 'ends', '-', '+', 'COUNT', ARGV[3]) }
