-- Subscriptions that an event of a type may match, with what they are below, in the order of their places. The caller judges them.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): event_type: its id; from: place to begin at, and max: how many subscriptions at most. Or application
-- {id, number, part}, with from and max of its endpoints; or endpoints {id, number, part}; or subscriptions: their numbers.
-- Reply: {place after the last, place to go on at or '', applications as a list of number and record, per row place, number, record, endpoint, its record,
-- application's number}.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"
-- @include "../../redis/scripts/includes/json.lua"

local asked = decoded(ARGV[1])
local event_type = call('HGET', P .. 'ty', asked.event_type)
if not event_type then
  return { '0', '', {}, {} }
end
local applications, rows, seen = {}, {}, {}
local max_fields = 200

-- `found`: { place, number } of subscriptions.
local function take(found)
  local numbers = {}
  for k, each in ipairs(found) do
    numbers[k] = each[2]
  end
  load_rows('sb', numbers)
  for _, each in ipairs(found) do
    local record = known.sb[each[2]]
    local row = record and subscription_row(each[2], record)
    if row then
      local application = row[5]
      if not seen[application] then
        seen[application] = true
        applications[#applications + 1] = application
        applications[#applications + 1] = known.ap[application]
      end
      for _, value in ipairs({ each[1], each[2], record, row[3], known.ep[row[3]], application }) do
        rows[#rows + 1] = value
      end
    end
  end
end

-- `found`: { place, number } of endpoints.
local function take_of_endpoints(found)
  local endpoints, subscriptions, wanted = {}, {}, struct.pack('>I4', tonumber(event_type))
  for k, each in ipairs(found) do
    endpoints[k] = each[2]
  end
  if #endpoints == 0 then
    return
  end
  for k, packed in ipairs(call('HMGET', P .. 'es', unpack(endpoints))) do
    local at = packed and find_pair(packed, wanted)
    if at then
      local _, number = struct.unpack('>I4I6', packed, at)
      subscriptions[#subscriptions + 1] = { found[k][1], integer(number) }
    end
  end
  take(subscriptions)
end

if asked.subscriptions then
  local found, numbers = {}, {}
  for k, number in ipairs(asked.subscriptions) do
    numbers[k] = integer(number)
  end
  load_rows('sb', numbers)
  for _, number in ipairs(numbers) do
    local record = known.sb[number]
    local own_type, place = string.match(record or '', '^%S+ %d+ (%d+) (%d+) ')
    if own_type == event_type then
      found[#found + 1] = { place, number }
    end
  end
  take(found)
  return { '0', '', applications, rows }
end
if asked.endpoints then
  local found = {}
  for _, each in ipairs(asked.endpoints) do
    local endpoint = find('ep', each.id, integer(each.number), each.part)
    if endpoint then
      found[#found + 1] = { '0', endpoint }
    end
  end
  take_of_endpoints(found)
  return { '0', '', applications, rows }
end

local name, owner = F.webhook_lists.subscriptions_of .. event_type, asked.application
if owner then
  local application = find('ap', owner.id, integer(owner.number), owner.part)
  if not application then
    return { '0', '', {}, {} }
  end
  name = F.webhook_lists.endpoints_of .. application
end
local found, more = list_walk(name, asked.from, 1, asked.max, max_fields)
if owner then
  take_of_endpoints(found)
else
  take(found)
end
local _, next_place = list_head(name)
return { integer(next_place), more and integer(more) or '', applications, rows }
