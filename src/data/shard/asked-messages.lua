#!lua flags=no-writes
-- Says which messages of events a filter asks for.
--
-- KEYS: see includes/shard.lua; the shard is the home of the events.
-- ARGV[1] routes, [2] destinations, [3] what is asked of attempts, as [10], [11] and [13] of list.lua; then events.
-- Reply: per event the first 1,000 of its messages that may match, those of other shards among them.
-- @include "includes/asked.lua"

asked.narrow(ARGV[1], ARGV[2], ARGV[3])
local reply = {}
for k = 4, #ARGV do
  local found = asked.of_event(ARGV[k])
  reply[k - 3] = found.ids
  for _, id in ipairs(found.elsewhere) do
    if #found.ids < asked.max then
      found.ids[#found.ids + 1] = id
    end
  end
end
return reply
