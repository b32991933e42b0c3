#!lua flags=no-writes
-- Reads rows of the live feed of a shard behind a position, also those that have left it (includes/feed.lua).
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): the position after; last: up to which row, or `+`; max_rows; org: whose rows must all be there, nil for none.
-- Reply: {rows {id, fields}; without org the organizations that have lost rows behind the position, up to the last of these rows}; nil: rows of the
-- organization, or of any, may be lost.
-- @include "../shard/includes/shard.lua"
-- @include "../../redis/scripts/includes/json.lua"

local wanted = decoded(ARGV[1])
local first, count = wanted.after, wanted.max_rows
local feed, old, lost = P .. 'feed', P .. 'feed-old', P .. 'feed-lost'

local function is_behind(one, other)
  local ms, number = string.match(one, '^(%d+)%-(%d+)$')
  local other_ms, other_number = string.match(other, '^(%d+)%-(%d+)$')
  if ms ~= other_ms then
    return tonumber(ms) > tonumber(other_ms)
  end
  return tonumber(number) > tonumber(other_number)
end

local rows = call('XRANGE', feed, first, wanted.last, 'COUNT', count + 1)
if rows[1] and rows[1][1] == first then
  table.remove(rows, 1)
  return { rows, {} }
end

local gone = call('HMGET', lost, 'first', '-', wanted.org or '')
local begins = call('XRANGE', feed, '-', '+', 'COUNT', 1)
local is_known = begins[1] and begins[1][1] == gone[1] and is_behind(gone[1], first)
if not is_known or gone[2] and is_behind(gone[2], first) or wanted.org and gone[3] and is_behind(gone[3], first) then
  return nil
end

rows = call('XRANGE', old, '(' .. first, wanted.last, 'COUNT', count)
if #rows < count then
  for _, row in ipairs(call('XRANGE', feed, '-', wanted.last, 'COUNT', count - #rows)) do
    rows[#rows + 1] = row
  end
end
local losers = {}
local by_organization = not wanted.org and call('HGETALL', lost) or {}
for k = 1, #by_organization, 2 do
  local name, id = by_organization[k], by_organization[k + 1]
  if name ~= 'first' and name ~= '-' and is_behind(id, first) and (#rows < count or not is_behind(id, rows[#rows][1])) then
    losers[#losers + 1] = name
  end
end
return { rows, losers }
