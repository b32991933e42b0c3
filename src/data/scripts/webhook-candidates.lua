-- Subscriptions that an event of a type may match, with what they are below, in the order of their places. The caller judges them.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] id of the event type, [2] 't' all, [3] place to begin at, [4] most; or [2] 'a' of an application, [3] place of an endpoint, [4] most endpoints,
-- [5] application's id, [6] its number, [7] its part; or [2] 'e' of endpoints, then per endpoint id, number, part.
-- Reply: {place after the last, place to go on at or '', applications as a list of number and record, rows {place, number, record, endpoint, its record,
-- application's number}}.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-list.lua"

local event_type = call('HGET', P .. 'ty', ARGV[1])
if not event_type then
  return { '0', '', {}, {} }
end
local applications, rows, seen = {}, {}, {}
local most_fields = 200

local function take(place, number)
  local record = call('HGET', P .. 'sb', number)
  local row = record and subscription_row(number, record)
  if not row then
    return
  end
  local application = row[5]
  if not seen[application] then
    seen[application] = true
    applications[#applications + 1] = application
    applications[#applications + 1] = record_above('ap', application)
  end
  rows[#rows + 1] = { place, number, record, row[3], record_above('ep', row[3]), application }
end

local wanted = struct.pack('>I4', tonumber(event_type))
local function take_of_endpoint(place, endpoint)
  local packed = call('HGET', P .. 'es', endpoint) or ''
  local at = find_pair(packed, wanted)
  if at then
    local _, number = struct.unpack('>I4I6', packed, at)
    take(place, whole(number))
  end
end

local name, is_of_application = 't' .. event_type, ARGV[2] == 'a'
if ARGV[2] == 'e' then
  for k = 3, #ARGV, 3 do
    local endpoint = find('ep', ARGV[k], ARGV[k + 1], ARGV[k + 2])
    if endpoint then
      take_of_endpoint('0', endpoint)
    end
  end
  return { '0', '', applications, rows }
end
if is_of_application then
  local application = find('ap', ARGV[5], ARGV[6], ARGV[7])
  if not application then
    return { '0', '', {}, {} }
  end
  name = 'a' .. application
end
local found, more = list_walk(name, tonumber(ARGV[3]), 1, tonumber(ARGV[4]), most_fields)
for _, each in ipairs(found) do
  if is_of_application then
    take_of_endpoint(each[1], each[2])
  else
    take(each[1], each[2])
  end
end
local _, next_place = list_head(name)
return { whole(next_place), more and whole(more) or '', applications, rows }
