#!lua flags=no-writes
-- Reads a page of an index with the records of its messages, newest first.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] index (without prefix), [2] ms and [3] number of the entry before which to begin, [4] oldest ms, [5] how many,
-- [6] `m`: with message records, `e`: with events, `i`: ids alone.
-- Reply: per entry {ms, number, id, record}; a message record is its hash with the route's names and the last attempt
-- (see message-view.ts), an event is what event_head_view says.
-- @include "includes/shard.lua"
-- @include "includes/view.lua"

local key, ms, number, oldest, count = P .. ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local readers = { e = event_head_view, m = message_view }
local read = readers[ARGV[6]] or function() end
local found, bytes, messages = {}, 0, 0
local function add(entry_ms, entry_number, id)
  local record = read(id)
  if record then
    found[#found + 1] = { entry_ms, entry_number, id, record }
    if ARGV[6] == 'e' then
      bytes, messages = bytes + #record[1], messages + record[3]
    end
  else
    found[#found + 1] = { entry_ms, entry_number, id }
  end
  -- A page of large headers, or of events with very many messages, ends early; its cursor leads on.
  return bytes < 4194304 and messages < 10000
end

local kind = call('TYPE', key).ok
if kind == 'stream' then
  for _, entry in ipairs(call('XREVRANGE', key, '(' .. ms .. '-' .. whole(number), oldest, 'COUNT', count)) do
    local entry_ms, entry_number = string.match(entry[1], '^(%d+)-(%d+)$')
    if not add(entry_ms, entry_number, entry[2][2]) then
      break
    end
  end
elseif kind == 'zset' then
  for _, pair in ipairs({ call('ZRANGE', key, 0, -1, 'REV', 'WITHSCORES') }) do
    for k = 1, #pair, 2 do
      local entry_number, id = tonumber(string.sub(pair[k], 1, 13)), string.sub(pair[k], 14)
      local entry_ms = tonumber(pair[k + 1])
      local before = entry_ms < tonumber(ms) or (entry_ms == tonumber(ms) and entry_number < number)
      if before and entry_ms >= tonumber(oldest) and #found < count then
        if not add(whole(entry_ms), whole(entry_number), id) then
          break
        end
      end
    end
  end
end
return found
