-- Counts what is below.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] 'a' endpoints of applications, 't' subscriptions of event types, 'e' subscriptions of endpoints; then per object its id, number, part
-- (of an event type the id alone).
-- Reply: a count for each.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"

local counts = {}
if ARGV[1] == 't' then
  for k = 2, #ARGV do
    local number = call('HGET', P .. 'ty', ARGV[k])
    counts[#counts + 1] = number and (list_head('t' .. number)) or 0
  end
  return counts
end
for k = 2, #ARGV, 3 do
  local count = 0
  if ARGV[1] == 'a' then
    local number = find('ap', ARGV[k], ARGV[k + 1], ARGV[k + 2])
    count = number and (list_head('a' .. number)) or 0
  else
    local number = find('ep', ARGV[k], ARGV[k + 1], ARGV[k + 2])
    count = number and #(call('HGET', P .. 'es', number) or '') / pair_width or 0
  end
  counts[#counts + 1] = count
end
return counts
