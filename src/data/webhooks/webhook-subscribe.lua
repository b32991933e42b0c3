#!lua flags=allow-oom
-- Subscribes an endpoint to event types, all in one step; those that it subscribes to already are left alone. Sent again, it answers as before.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): endpoint {id, number, part}; max_subscriptions of an endpoint; mark of the request or '';
-- transform of all, if they have one; json of each; subscriptions {event_type, part of the id, id where it is that of a custom resource}.
-- Reply: {'missing'} (no endpoint) | {'made', rows} (those were made under the mark before) | {'gone'} (an event type was deleted) | {'retired'} (the
-- transform is being deleted) | {'exists'} (an id is taken) | {'full'} | {'done', endpoint's number, its part, application's number, its part, per
-- subscription its number or '' (subscribed before)}.
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"
-- @include "includes/webhook-request-keys.lua"
-- @include "includes/webhook-deletions.lua"
-- @include "includes/webhook-transforms.lua"

local given = decoded(ARGV[1])
local endpoint, record = find('ep', given.endpoint.id, integer(given.endpoint.number), given.endpoint.part)
local over = endpoint and endpoint_row(endpoint, record)
if not over then
  return { 'missing' }
end

local made_before = {}
for number in string.gmatch(made_under(given.mark) or '', '%d+') do
  local made = call('HGET', P .. 'sb', number)
  made_before[#made_before + 1] = made and subscription_row(number, made) or nil
end
if #made_before > 0 then
  return { 'made', unpack(made_before) }
end

local existing = pairs_of(endpoint)
local by_event_type = {}
for _, each in ipairs(existing) do
  by_event_type[each[1]] = each[2]
end

local event_type_ids = {}
for k, each in ipairs(given.subscriptions) do
  event_type_ids[k] = each.event_type
end
local event_types = call('HMGET', P .. 'ty', unpack(event_type_ids))

local numbers, fresh, seen = {}, {}, {}
for at, event_type_id in ipairs(event_type_ids) do
  local id, part = given.subscriptions[at].id, given.subscriptions[at].part
  local event_type = event_types[at]
  local other = event_type and by_event_type[tonumber(event_type)]
  numbers[at] = ''
  if other then
    local kept = record_of('sb', integer(other))
    if kept and part_of(kept) == part then
      numbers[at] = integer(other)
    end
  elseif not seen[event_type_id] then
    seen[event_type_id] = true
    if not event_type and is_deleted(event_type_id) then
      return { 'gone' }
    end
    local kept = id and call('HGET', P .. 'ids', id)
    if kept and call('HEXISTS', P .. 'sb', kept) == 1 then
      return { 'exists' }
    end
    fresh[#fresh + 1] = { at = at, event_type_id = event_type_id, event_type = event_type, id = id, part = part }
  end
end
if #existing + #fresh > given.max_subscriptions then
  return { 'full' }
end
local transform = given.transform
if #fresh > 0 and transform and is_deleted(transform) then
  return { 'retired' }
end

if #fresh > 0 then
  local last = call('HINCRBY', KEYS[1], F.webhook_control.last_number .. 'sb', #fresh)
  local packed, made, changed, new = {}, {}, {}, {}
  for k, each in ipairs(fresh) do
    local event_type, number = each.event_type, integer(last - #fresh + k)
    if not event_type then
      event_type = integer(call('HINCRBY', KEYS[1], F.webhook_control.last_number .. 'ty', 1))
      call('HSET', P .. 'ty', each.event_type_id, event_type)
      call('HSET', P .. 'tr', event_type, each.event_type_id)
    end
    made[#made + 1] = number
    made[#made + 1] = each.part .. ' ' .. endpoint .. ' ' .. event_type .. ' ' .. list_append(F.webhook_lists.subscriptions_of .. event_type, number) .. ' ' .. given.json
    if each.id then
      call('HSET', P .. 'ids', each.id, number)
    end
    packed[k] = pair(event_type, number)
    changed[k] = { each.event_type_id, number }
    numbers[each.at] = number
    new[k] = number
  end
  note_made(given.mark, table.concat(new, ' '))
  call('HSET', P .. 'sb', unpack(made))
  call('HSET', P .. 'es', endpoint, (call('HGET', P .. 'es', endpoint) or '') .. table.concat(packed))
  count_transform(transform, #fresh)
  bump(changed)
  if call('HEXISTS', P .. 'v', F.webhook_versions.any) == 0 then
    bump({ { F.webhook_versions.any, '0' } })
  end
end
return { 'done', endpoint, part_of(record), over[3], over[4], unpack(numbers) }
