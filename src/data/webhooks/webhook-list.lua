-- One stretch of a list. Whatever is below something deleted is passed over.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts):
--   what: ap, ep, sb all of a kind; an applications by name; a endpoints of an application; t subscriptions of an event type; e subscriptions of an endpoint;
--   s subscriptions of an application
--   step: 1 upwards (oldest first, by name from A) or -1 downwards; after: position of the last member seen, or ''
--   max_rows; max_looks: members to look at
--   above {id, number, part}: what they are below, if it is one thing
-- Reply: {rows one after the other, each with its position before it; position to go on after, or '' at the end}.
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"

local list = decoded(ARGV[1])
local what, step, from, most, budget = list.what, list.step, list.after, list.max_rows, list.max_looks
local rows, row_count, looked, position = {}, 0, 0, from
local max_fields = 200

-- How many members may be looked at next.
local function room()
  return math.min(most - row_count, budget - looked, 100)
end

-- `found`: { position, number }, at most as many as there is room for.
local function take(kind, found)
  local numbers = {}
  for k, each in ipairs(found) do
    numbers[k] = each[2]
  end
  load_rows(kind, numbers)
  for _, each in ipairs(found) do
    local record = known[kind][each[2]]
    local row = record and row_of[kind](each[2], record)
    looked = looked + 1
    position = each[1]
    if row then
      row_count = row_count + 1
      rows[#rows + 1] = each[1]
      for _, value in ipairs(row) do
        rows[#rows + 1] = value
      end
    end
  end
end

local function walk_numbers(kind)
  local last = tonumber(call('HGET', KEYS[1], F.webhook_control.last_number .. kind) or '0')
  local number = from ~= '' and tonumber(from) + step or (step > 0 and 1 or last)
  while number >= 1 and number <= last do
    local found = {}
    while #found < room() and number >= 1 and number <= last do
      found[#found + 1] = { integer(number), integer(number) }
      number = number + step
    end
    if #found == 0 then
      return position
    end
    take(kind, found)
  end
  return ''
end

local function walk_names()
  while room() > 0 do
    local found, wanted = {}, room()
    local members
    if step > 0 then
      members = call('ZRANGE', P .. 'an', position == '' and '-' or '(' .. position, '+', 'BYLEX', 'LIMIT', 0, wanted)
    else
      members = call('ZRANGE', P .. 'an', position == '' and '+' or '(' .. position, '-', 'BYLEX', 'REV', 'LIMIT', 0, wanted)
    end
    for k, member in ipairs(members) do
      found[k] = { member, string.match(member, '%z(%d+)$') }
    end
    take('ap', found)
    if #members < wanted then
      return ''
    end
  end
  return position
end

local function walk_list(kind, name)
  local place = from == '' and math.huge or tonumber(from) - 1
  while room() > 0 do
    local found, more = list_walk(name, place, -1, room(), max_fields)
    take(kind, found)
    if not more then
      return ''
    end
    place = more
    -- Places are passed downwards: the next one is below.
    position = integer(more + 1)
    if #found == 0 then
      return position
    end
  end
  return position
end

-- Subscriptions of an endpoint below a number, the newest first; returns whether that was all.
local function walk_endpoint(endpoint, below, prefix)
  local all = pairs_of(endpoint)
  local k = #all
  while k > 0 do
    local found, wanted = {}, room()
    while #found < wanted and k > 0 do
      local number = all[k][2]
      if number < below then
        found[#found + 1] = { prefix .. integer(number), integer(number) }
      end
      k = k - 1
    end
    take('sb', found)
    if k > 0 and room() == 0 then
      return false
    end
  end
  return true
end

local function walk_application(application)
  local place, below = string.match(from, '^(%d+) (%d+)$')
  place, below = tonumber(place) or math.huge, tonumber(below) or math.huge
  while true do
    local found, more = list_walk(F.webhook_lists.endpoints_of .. application, place, -1, 20, max_fields)
    for _, each in ipairs(found) do
      local is_first = tonumber(each[1]) == place
      looked = looked + 1
      if not walk_endpoint(each[2], is_first and below or math.huge, each[1] .. ' ') then
        return position
      end
      position = each[1] .. ' 0'
      if room() <= 0 then
        return position
      end
    end
    if not more then
      return ''
    end
    place, below = more, math.huge
    if #found == 0 then
      return integer(more + 1) .. ' 0'
    end
  end
end

if what == 'ap' or what == 'ep' or what == 'sb' then
  return { rows, walk_numbers(what) }
end
if what == 'an' then
  return { rows, walk_names() }
end
if what == 't' then
  local event_type = call('HGET', P .. 'ty', list.above.id)
  return { rows, event_type and walk_list('sb', F.webhook_lists.subscriptions_of .. event_type) or '' }
end
local owner = find(what == 'e' and 'ep' or 'ap', list.above.id, integer(list.above.number), list.above.part)
if not owner then
  return { rows, '' }
end
if what == 'a' then
  return { rows, walk_list('ep', F.webhook_lists.endpoints_of .. owner) }
end
if what == 'e' then
  return { rows, walk_endpoint(owner, from == '' and math.huge or tonumber(from), '') and '' or position }
end
return { rows, walk_application(owner) }
