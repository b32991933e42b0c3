#!lua
-- Reads one event or message.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] `e` an event, `m` a message, `d` the messages of an event; [2] id without prefix and shard.
-- Reply: event_view, message_view, or for `d` {event_view, {id, message_view} …}; nil when there is no such record.
-- @include "includes/shard.lua"
-- @include "includes/view.lua"

if ARGV[1] == 'm' then
  return message_view(ARGV[2])
end
local event = event_view(ARGV[2])
if ARGV[1] == 'e' or not event then
  return event
end
local reply = { event }
for _, id in ipairs(event[3]) do
  local view = message_view(id)
  if view then
    reply[#reply + 1] = { id, view }
  end
end
return reply
