-- One stretch of a list. Whatever is below something deleted is passed over.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] what: ap, ep, sb all of a kind; an applications by name; a endpoints of an application; t subscriptions of an event type; e subscriptions of an
-- endpoint; s subscriptions of an application, [2] 1 upwards (oldest first, by name from A) or -1 downwards, [3] position of the last member seen or '', [4] most rows, [5] most
-- members to look at, [6] id of what they are below, [7] its number, [8] its part.
-- Reply: {rows, each with its position before it; position to go on after, or '' at the end}.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-list.lua"

local what, step, from, most, budget = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local rows, looked, position = {}, 0, from
local most_fields = 200

-- Whether there is room for more.
local function is_open()
  return #rows < most and looked < budget
end

local function take(kind, number, at)
  looked = looked + 1
  position = at
  local record = call('HGET', P .. kind, number)
  local row = record and row_of[kind](number, record)
  if row then
    rows[#rows + 1] = { at, unpack(row) }
  end
end

local function walk_numbers(kind)
  local last = tonumber(call('HGET', KEYS[1], 'n:' .. kind) or '0')
  local number = from ~= '' and tonumber(from) + step or (step > 0 and 1 or last)
  while number >= 1 and number <= last do
    if not is_open() then
      return position
    end
    take(kind, whole(number), whole(number))
    number = number + step
  end
  return ''
end

local function walk_names()
  local found
  if step > 0 then
    found = call('ZRANGE', P .. 'an', from == '' and '-' or '(' .. from, '+', 'BYLEX', 'LIMIT', 0, budget)
  else
    found = call('ZRANGE', P .. 'an', from == '' and '+' or '(' .. from, '-', 'BYLEX', 'REV', 'LIMIT', 0, budget)
  end
  for _, member in ipairs(found) do
    if not is_open() then
      return position
    end
    take('ap', string.match(member, '%z(%d+)$'), member)
  end
  return #found == budget and position or ''
end

local function walk_list(kind, name)
  local place = from == '' and math.huge or tonumber(from) - 1
  local found, more = list_walk(name, place, -1, most, most_fields)
  for _, each in ipairs(found) do
    take(kind, each[2], each[1])
  end
  -- Places are passed downwards: the next one is below.
  return more and whole(more + 1) or ''
end

-- Subscriptions of an endpoint below a number, the newest first; answers whether that was all.
local function walk_endpoint(endpoint, below, prefix)
  local found = pairs_of(endpoint)
  for k = #found, 1, -1 do
    local number = found[k][2]
    if number < below then
      if not is_open() then
        return false
      end
      take('sb', whole(number), prefix .. whole(number))
    end
  end
  return true
end

local function walk_application(application)
  local place, below = string.match(from, '^(%d+) (%d+)$')
  place, below = tonumber(place) or math.huge, tonumber(below) or math.huge
  while true do
    local found, more = list_walk('a' .. application, place, -1, 20, most_fields)
    for _, each in ipairs(found) do
      local is_first = tonumber(each[1]) == place
      looked = looked + 1
      if not walk_endpoint(each[2], is_first and below or math.huge, each[1] .. ' ') then
        return position
      end
      position = each[1] .. ' 0'
      if not is_open() then
        return position
      end
    end
    if not more then
      return ''
    end
    place, below = more, math.huge
    if #found == 0 then
      return whole(more + 1) .. ' 0'
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
  local event_type = call('HGET', P .. 'ty', ARGV[6])
  return { rows, event_type and walk_list('sb', 't' .. event_type) or '' }
end
local owner = find(what == 'e' and 'ep' or 'ap', ARGV[6], ARGV[7], ARGV[8])
if not owner then
  return { rows, '' }
end
if what == 'a' then
  return { rows, walk_list('ep', 'a' .. owner) }
end
if what == 'e' then
  return { rows, walk_endpoint(owner, from == '' and math.huge or tonumber(from), '') and '' or position }
end
return { rows, walk_application(owner) }
