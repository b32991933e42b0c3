-- Subscriptions that an event of a type may match, with what they are below, in the order of their places. The caller judges them.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] id of the event type, [2] 't' all, [3] place to begin at, [4] most; or [2] 'a' of an application, [3] place of an endpoint, [4] most endpoints,
-- [5] application's id, [6] its number, [7] its part; or [2] 'e' of endpoints, then per endpoint id, number, part; or [2] 'n', then numbers of
-- subscriptions.
-- Reply: {place after the last, place to go on at or '', applications as a list of number and record, per row place, number, record, endpoint, its record,
-- application's number}.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"

local event_type = call('HGET', P .. 'ty', ARGV[1])
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
      subscriptions[#subscriptions + 1] = { found[k][1], whole(number) }
    end
  end
  take(subscriptions)
end

if ARGV[2] == 'n' then
  local found, numbers = {}, { unpack(ARGV, 3) }
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
if ARGV[2] == 'e' then
  local found = {}
  for k = 3, #ARGV, 3 do
    local endpoint = find('ep', ARGV[k], ARGV[k + 1], ARGV[k + 2])
    if endpoint then
      found[#found + 1] = { '0', endpoint }
    end
  end
  take_of_endpoints(found)
  return { '0', '', applications, rows }
end

local name, is_of_application = 't' .. event_type, ARGV[2] == 'a'
if is_of_application then
  local application = find('ap', ARGV[5], ARGV[6], ARGV[7])
  if not application then
    return { '0', '', {}, {} }
  end
  name = 'a' .. application
end
local found, more = list_walk(name, tonumber(ARGV[3]), 1, tonumber(ARGV[4]), max_fields)
if is_of_application then
  take_of_endpoints(found)
else
  take(found)
end
local _, next_place = list_head(name)
return { whole(next_place), more and whole(more) or '', applications, rows }
