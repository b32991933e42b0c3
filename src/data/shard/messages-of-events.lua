#!lua flags=no-writes
-- Reads which messages the events of sources have, where these are few.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] how many events and messages at most, then sources.
-- Reply: a list of messages; of one of another shard the whole id without `msg_`. `many` when there are more, or where not every message is with its event.
-- @include "includes/shard.lua"
-- @include "includes/event-messages.lua"
-- @include "includes/packed.lua"

local most, ids, looked = tonumber(ARGV[1]), {}, 0

local function events_of(key)
  local kind, events = call('TYPE', key).ok, {}
  if kind == 'zset' then
    for _, member in ipairs(call('ZRANGE', key, 0, most)) do
      events[#events + 1] = string.sub(member, 14)
    end
  elseif kind == 'stream' then
    if call('XLEN', key) > most then
      return nil
    end
    for _, entry in ipairs(call('XRANGE', key, '-', '+')) do
      events[#events + 1] = entry[2][2]
    end
  end
  return events
end

for k = 2, #ARGV do
  local events = events_of(P .. 'i:' .. ARGV[k])
  if not events then
    return 'many'
  end
  for _, event in ipairs(events) do
    local names, are_all = messages_of(event, call('GETRANGE', P .. 'e:' .. event, 0, 255))
    looked = looked + 1
    if not are_all or looked > most or #ids + #names > most then
      return 'many'
    end
    for _, id in ipairs(names) do
      -- Only events of sources have results of filters.
      if not packed.is_pack(id) then
        ids[#ids + 1] = id
      end
    end
  end
end
return ids
