#!lua flags=no-writes
-- Looks for messages in a lane of a target, the newest entries first.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] lane, [2] the entry before which to begin, or '+', [3] how many entries to look at; then messages.
-- Reply: {the last entry that was looked at, or '' at the end of the lane; then each message that was found, and its entry}.
-- @include "../shard/includes/shard.lua"

local before, count = ARGV[2], tonumber(ARGV[3])
local wanted, found = {}, {}
for k = 4, #ARGV do
  wanted[ARGV[k]] = true
end
local key = P .. 'w:' .. ARGV[1]
local entries = call('TYPE', key).ok == 'stream' and call('XREVRANGE', key, before == '+' and '+' or '(' .. before, '-', 'COUNT', count) or {}
for _, entry in ipairs(entries) do
  local id = entry[2][2]
  if wanted[id] then
    found[#found + 1] = id
    found[#found + 1] = entry[1]
  end
end
return { #entries < count and '' or entries[#entries][1], unpack(found) }
