#!lua flags=no-writes
-- Reads what deleted applications and endpoints were (includes/webhook-tombstones.lua), and which event types had a name.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): kind ap or ep and ids {id, number, part}; or event_type: the name of event types.
-- Reply: per id the name of the application or the URL of the endpoint, or '' when nothing is known; of event types since when (ms) all that were deleted are known, or '', and
-- their ids.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-tombstones.lua"
-- @include "../../redis/scripts/includes/json.lua"

local asked = decoded(ARGV[1])
local kind, found = asked.kind, {}
if asked.event_type then
  found[1] = call('HGET', KEYS[1], F.webhook_control.past_since_ms) or ''
  for id in string.gmatch(call('HGET', P .. 'past', F.webhook_past.event_types_of_name .. asked.event_type) or '', '%S+') do
    found[#found + 1] = id
  end
  return found
end
for _, each in ipairs(asked.ids) do
  local id, number, part = each.id, integer(each.number), each.part
  local past = call('HMGET', P .. 'past', id, kind .. ':' .. number .. ':' .. part)
  -- The record of an endpoint whose application is deleted is there until it is swept.
  local _, record = find(kind, id, number, part)
  found[#found + 1] = record and shown_of(kind, record) or past[1] or past[2] or ''
end
return found
