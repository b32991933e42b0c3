#!lua flags=no-writes
-- Says which messages of events a filter asks for.
--
-- KEYS: see includes/shard.lua; the shard is the home of the events.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): events; routes, destinations and outcome as in list.lua.
-- Reply: per event the first 1,000 of its messages that may match, those of other shards among them.
-- @include "includes/message-filter.lua"
-- @include "../../redis/scripts/includes/json.lua"

local look = decoded(ARGV[1])
asked.narrow(look)
local reply = {}
for k, event in ipairs(look.events) do
  local found = asked.of_event(event)
  reply[k] = found.ids
  for _, id in ipairs(found.elsewhere) do
    if #found.ids < asked.max then
      found.ids[#found.ids + 1] = id
    end
  end
end
return reply
