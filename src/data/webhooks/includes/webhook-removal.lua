-- @include "webhook-lists.lua"
-- @include "webhook-transforms.lua"
-- @include "webhooks.lua"

-- Removing subscriptions, step by step where there are many. Needs webhooks.lua, webhook-lists.lua and webhook-transforms.lua.

-- Forgets the id of a custom resource; others are not kept.
local function forget_id(prefix, record)
  local part = part_of(record)
  if #part > 16 then
    call('HDEL', P .. 'ids', prefix .. part)
  end
end

-- A subscription without its entry in `es`.
local function remove_record(number)
  local record = call('HGET', P .. 'sb', number)
  if not record then
    return
  end
  local event_type, place = string.match(record, '^%S+ %d+ (%d+) (%d+) ')
  local event_type_id = record_of('tr', event_type)
  list_remove(F.webhook_lists.subscriptions_of .. event_type, place)
  call('HDEL', P .. 'sb', number)
  forget_id('sub_', record)
  count_transform(transform_of(record), -1)
  if event_type_id then
    bump({ { event_type_id, number } })
  end
end

local function remove_subscription(number)
  local endpoint, event_type = string.match(call('HGET', P .. 'sb', number) or '', '^%S+ (%d+) (%d+) ')
  if not endpoint then
    return
  end
  remove_record(number)
  local packed = call('HGET', P .. 'es', endpoint) or ''
  local at = find_pair(packed, pair(event_type, number))
  if not at then
    return
  end
  packed = string.sub(packed, 1, at - 1) .. string.sub(packed, at + pair_width)
  if packed == '' then
    call('HDEL', P .. 'es', endpoint)
  else
    call('HSET', P .. 'es', endpoint, packed)
  end
end

-- Removes at most `budget` subscriptions of an endpoint, the newest first; returns how many.
local function empty_endpoint(endpoint, budget)
  local packed = call('HGET', P .. 'es', endpoint) or ''
  local count = math.min(budget, #packed / pair_width)
  for k = 0, count - 1 do
    local _, number = struct.unpack('>I4I6', packed, #packed - (k + 1) * pair_width + 1)
    remove_record(integer(number))
  end
  local left = #packed - count * pair_width
  if left > 0 then
    call('HSET', P .. 'es', endpoint, string.sub(packed, 1, left))
  elseif packed ~= '' then
    call('HDEL', P .. 'es', endpoint)
  end
  return count, left == 0
end
