-- Counts what is below.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): what: a endpoints of applications, t subscriptions of event types, e subscriptions of endpoints; ids
-- {id, number, part}, of event types the id alone.
-- Reply: a count for each.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"
-- @include "../../redis/scripts/includes/json.lua"

local asked = decoded(ARGV[1])
local counts = {}
if asked.what == 't' then
  for _, each in ipairs(asked.ids) do
    local number = call('HGET', P .. 'ty', each.id)
    counts[#counts + 1] = number and (list_head(F.webhook_lists.subscriptions_of .. number)) or 0
  end
  return counts
end
for _, each in ipairs(asked.ids) do
  local count = 0
  if asked.what == 'a' then
    local number = find('ap', each.id, integer(each.number), each.part)
    count = number and (list_head(F.webhook_lists.endpoints_of .. number)) or 0
  else
    local number = find('ep', each.id, integer(each.number), each.part)
    count = number and #(call('HGET', P .. 'es', number) or '') / pair_width or 0
  end
  counts[#counts + 1] = count
end
return counts
