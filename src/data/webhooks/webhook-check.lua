-- Checks a part of the webhook store of an organization and returns the inconsistencies: between any two scripts the store must be consistent.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] which hash: ap, ep, sb, es, ls, ax, ids; or an. ARGV[2] cursor, '0' at first. ARGV[3] how many entries, about.
-- Reply: {cursor to go on with, '0' at the end; how many entries were checked; entry and complaint, one after the other}.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"
-- @include "includes/webhook-transforms.lua"
-- @include "../../redis/scripts/includes/json.lua"

local what = ARGV[1]
local complaints = {}
-- Most fields of a list whose members are counted; those of longer ones are counted by nobody.
local max_fields = 20

local function complain(entry, complaint)
  complaints[#complaints + 1] = entry
  complaints[#complaints + 1] = complaint
end

local function is_doomed(name)
  return call('HEXISTS', P .. 'doom', name) == 1
end

local function member_at(name, place)
  local packed = call('HGET', lists, list_field(name, tonumber(place))) or ''
  local at = tonumber(place) % places_per_field * place_width
  local member = string.sub(packed, at + 1, at + place_width)
  return #member == place_width and integer((struct.unpack('>I6', member))) or '0'
end

local check = {}

function check.ap(number, record)
  local external = decoded(string.match(record, '{.*$'))[F.webhook_application.external_id]
  if external and call('HGET', P .. 'ax', external) ~= number then
    complain(number, 'is not found by its external id')
  end
end

function check.ep(number, record)
  local application, place = string.match(record, '^%S+ (%d+) (%d+) {')
  if not application then
    return complain(number, 'cannot be read')
  end
  if not record_of('ap', application) and not is_doomed(F.webhook_doomed.application .. application) then
    complain(number, 'has no application')
  end
  if member_at(F.webhook_lists.endpoints_of .. application, place) ~= number then
    complain(number, 'is not in the list of its application')
  end
end

function check.sb(number, record)
  local endpoint, event_type, place = string.match(record, '^%S+ (%d+) (%d+) (%d+) {')
  if not endpoint then
    return complain(number, 'cannot be read')
  end
  if not record_of('ep', endpoint) and not is_doomed(F.webhook_doomed.endpoint .. endpoint) then
    complain(number, 'has no endpoint')
  end
  if not record_of('tr', event_type) and not is_doomed(F.webhook_doomed.event_type .. event_type) then
    complain(number, 'has no event type')
  end
  if not find_pair(call('HGET', P .. 'es', endpoint) or '', pair(event_type, number)) then
    complain(number, 'is not among those of its endpoint')
  end
  if member_at(F.webhook_lists.subscriptions_of .. event_type, place) ~= number then
    complain(number, 'is not in the list of its event type')
  end
  local transform = transform_of(record)
  if transform and call('HEXISTS', transforms, transform) == 0 then
    complain(number, 'has a transform that counts no subscription')
  end
end

function check.es(endpoint)
  local seen = {}
  for _, each in ipairs(pairs_of(endpoint)) do
    local record = record_of('sb', integer(each[2])) or ''
    local own, event_type = string.match(record, '^%S+ (%d+) (%d+) ')
    if own ~= endpoint or event_type ~= integer(each[1]) then
      complain(endpoint, 'lists the subscription ' .. integer(each[2]) .. ', which is none of it')
    end
    if seen[each[1]] then
      complain(endpoint, 'subscribes twice to an event type')
    end
    seen[each[1]] = true
  end
end

function check.ls(field, value)
  local name, n = string.match(field, '^(%a%d+):(%d+)$')
  if name then
    local has_endpoints = string.sub(name, 1, 1) == F.webhook_lists.endpoints_of
    for at = 1, #value, place_width do
      local member = integer((struct.unpack('>I6', value, at)))
      local place = integer(tonumber(n) * places_per_field + (at - 1) / place_width)
      local pattern = has_endpoints and '^%S+ (%d+) (%d+) {' or '^%S+ %d+ (%d+) (%d+) {'
      local record = member ~= '0' and record_of(has_endpoints and 'ep' or 'sb', member)
      local owner, own_place = string.match(record or '', pattern)
      if member ~= '0' and (owner ~= string.sub(name, 2) or own_place ~= place) then
        complain(field, 'lists ' .. member .. ', which is not there')
      end
    end
    return
  end
  local count, next_place = list_head(field)
  if next_place <= max_fields * places_per_field then
    local found = list_walk(field, 0, 1, next_place, max_fields)
    if #found ~= count then
      complain(field, 'counts ' .. integer(count) .. ' members and has ' .. integer(#found))
    end
  end
end

function check.ax(external, number)
  if not record_of('ap', number) then
    complain(external, 'is the external id of an application that is gone')
  end
end

function check.ids(id, number)
  local kind = ({ app = 'ap', ep = 'ep', sub = 'sb' })[string.match(id, '^%a+')]
  local record = kind and record_of(kind, number)
  if not record or part_of(record) ~= string.match(id, '_(.+)$') then
    complain(id, 'is the id of an object that is gone')
  end
end

function check.an(member)
  if not record_of('ap', string.match(member, '%z(%d+)$') or '') then
    complain(string.gsub(member, '%z', ' '), 'is the name of an application that is gone')
  end
end

local found = call(what == 'an' and 'ZSCAN' or 'HSCAN', P .. what, ARGV[2], 'COUNT', ARGV[3])
for k = 1, #found[2], 2 do
  check[what](found[2][k], found[2][k + 1])
end
if what == 'an' and found[1] == '0' and call('ZCARD', P .. 'an') ~= call('HLEN', P .. 'ap') then
  complain('names', 'are not as many as applications')
end
return { found[1], #found[2] / 2, complaints }
