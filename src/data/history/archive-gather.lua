#!lua flags=allow-oom
-- Moves what has finished since the last time from `fin` to the archives where it belongs.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] how many entries to look at, [2] how many that wait are written at once, [3] and else after how long (ms).
-- Reply: 1 when there is more to read.
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/archive.lua"

if call('EXISTS', P .. 'arc') == 0 then
  return 0
end
local budget = tonumber(ARGV[1])
local last = call('HGET', ctl, F.control.archive_position)
local entries = call('XRANGE', P .. 'fin', last and '(' .. last or '-', '+', 'COUNT', budget)
local moved = 0
for k, entry in ipairs(entries) do
  local org = entry[2][1] == F.entry.message and archive_of(entry[2][2])
  if org then
    moved = moved + move_to_archive(org, entry[1], entry[2][2])
  end
  last = entry[1]
  -- One pack may have many results.
  if moved >= budget then
    budget = k
    break
  end
end
if #entries > 0 then
  call('HSET', ctl, F.control.archive_position, last)
end
write_moved(tonumber(ARGV[2]), tonumber(ARGV[3]))
return #entries >= budget and 1 or 0
