#!lua flags=allow-oom
-- Subscribes an endpoint to event types, all in one step; those that it subscribes to already are left alone. Sent again, it answers as before.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] endpoint's id, [2] its number, [3] its part, [4] most subscriptions of an endpoint; then per subscription event type's id, own id
-- where it is that of a custom resource, else '', part of the id, JSON.
-- Reply: {'missing'} (no endpoint) | {'exists'} (an id is taken) | {'full'} | {'done', endpoint's number, its part, application's number, its part, per subscription its
-- number or '' (subscribed before)}.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-list.lua"

local endpoint, record = find('ep', ARGV[1], ARGV[2], ARGV[3])
local over = endpoint and endpoint_row(endpoint, record)
if not over then
  return { 'missing' }
end

local existing = pairs_of(endpoint)
local by_event_type = {}
for _, each in ipairs(existing) do
  by_event_type[each[1]] = each[2]
end

local event_type_ids = {}
for k = 5, #ARGV, 4 do
  event_type_ids[#event_type_ids + 1] = ARGV[k]
end
local event_types = call('HMGET', P .. 'ty', unpack(event_type_ids))

local numbers, fresh, seen = {}, {}, {}
for at, event_type_id in ipairs(event_type_ids) do
  local k = 1 + 4 * at
  local id, part = ARGV[k + 1], ARGV[k + 2]
  local event_type = event_types[at]
  local other = event_type and by_event_type[tonumber(event_type)]
  numbers[at] = ''
  if other then
    local kept = record_of('sb', whole(other))
    if kept and part_of(kept) == part then
      numbers[at] = whole(other)
    end
  elseif not seen[event_type_id] then
    seen[event_type_id] = true
    local kept = id ~= '' and call('HGET', P .. 'ids', id)
    if kept and call('HEXISTS', P .. 'sb', kept) == 1 then
      return { 'exists' }
    end
    fresh[#fresh + 1] = { at = at, event_type_id = event_type_id, event_type = event_type, id = id, part = part, json = ARGV[k + 3] }
  end
end
if #existing + #fresh > tonumber(ARGV[4]) then
  return { 'full' }
end

if #fresh > 0 then
  local last = call('HINCRBY', KEYS[1], 'n:sb', #fresh)
  local packed, made, changed = {}, {}, {}
  for k, each in ipairs(fresh) do
    local event_type, number = each.event_type, whole(last - #fresh + k)
    if not event_type then
      event_type = whole(call('HINCRBY', KEYS[1], 'n:ty', 1))
      call('HSET', P .. 'ty', each.event_type_id, event_type)
      call('HSET', P .. 'tr', event_type, each.event_type_id)
    end
    made[#made + 1] = number
    made[#made + 1] = each.part .. ' ' .. endpoint .. ' ' .. event_type .. ' ' .. list_append('t' .. event_type, number) .. ' ' .. each.json
    if each.id ~= '' then
      call('HSET', P .. 'ids', each.id, number)
    end
    packed[k] = pair(event_type, number)
    changed[k] = each.event_type_id
    numbers[each.at] = number
  end
  call('HSET', P .. 'sb', unpack(made))
  call('HSET', P .. 'es', endpoint, (call('HGET', P .. 'es', endpoint) or '') .. table.concat(packed))
  bump(changed)
  if call('HEXISTS', P .. 'v', '*') == 0 then
    bump({ '*' })
  end
end
return { 'done', endpoint, part_of(record), over[3], over[4], unpack(numbers) }
