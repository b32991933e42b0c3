#!lua flags=no-writes
-- Looks for messages in a lane of a target, the newest entries first.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): lane; before: the entry before which to begin, or '+'; count: how many entries to look at; messages.
-- Reply: {the last entry that was looked at, or '' at the end of the lane; then each message that was found, and its entry}.
-- @include "../shard/includes/shard.lua"
-- @include "../../redis/scripts/includes/json.lua"

local asked = decoded(ARGV[1])
local before, count = asked.before, asked.count
local wanted, found = {}, {}
for _, id in ipairs(asked.messages) do
  wanted[id] = true
end
local key = P .. 'w:' .. asked.lane
local entries = call('TYPE', key).ok == 'stream' and call('XREVRANGE', key, before == '+' and '+' or '(' .. before, '-', 'COUNT', count) or {}
for _, entry in ipairs(entries) do
  local id = entry[2][2]
  if wanted[id] then
    found[#found + 1] = id
    found[#found + 1] = entry[1]
  end
end
return { #entries < count and '' or entries[#entries][1], unpack(found) }
