#!lua
-- Stores events with their messages and queues them; the events of one tick in one call.
-- Without allow-oom: a full Redis refuses the whole call before its first write, which is the back-pressure of ingest.
--
-- KEYS: see includes/shard.lua. Ids are without prefix and shard (the last 25 characters).
-- ARGV[1] number of events; then per event: event, organization, source, text (see event-text.ts), number of targets, per
-- target message, route, destination, largest number of attempts; number of filtered, per filtered message, route.
-- Reply: the text `full` when too much memory is in use (heartbeat.lua); else per event: 1 stored, 0 was stored already (a re-sent call), or the text of what stands in its way.
-- @include "includes/shard.lua"
-- @include "includes/index.lua"
-- @include "includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/finish.lua"
-- @include "includes/intern.lua"
-- @include "includes/count.lua"

if call('HGET', ctl, 'full') then
  return 'full'
end

local position = 1
local function argument()
  position = position + 1
  return ARGV[position]
end

-- Target numbers of this call, and what the script has found out about them.
local numbers = {}
local obstacles = {}
local touched = {}
local rooms = {}
local opened = 0

local function number_of(org, route, destination)
  local name = org .. ' ' .. route .. ' ' .. destination
  if not numbers[name] then
    numbers[name] = call('HGET', P .. 'tn:' .. org, route .. ' ' .. destination)
  end
  return numbers[name]
end

local function target_of(org, route, destination)
  local n = number_of(org, route, destination) or intern(org, route, destination)
  numbers[org .. ' ' .. route .. ' ' .. destination] = n
  return n
end

-- How many more messages the queue of a destination takes; nil: any number.
local function queue_room(destination)
  if rooms[destination] == nil then
    local l = call('HMGET', P .. 'l:' .. destination, 'q', 't')
    local room = false
    if l[1] then
      room = tonumber(l[1])
      for n in string.gmatch(l[2], '%d+') do
        room = room - queued(n)
      end
    end
    rooms[destination] = room
  end
  return rooms[destination]
end

-- What stands in the way of storing the event, looked for before the first write.
local function obstacle(e)
  for _, target in ipairs(e.targets) do
    local n = number_of(e.org, target.route, target.destination)
    if n then
      if obstacles[n] == nil then
        local kind = call('TYPE', P .. 'w:' .. n).ok
        obstacles[n] = kind ~= 'stream' and kind ~= 'none' and 'the work stream of target ' .. n .. ' is a ' .. kind
      end
      if obstacles[n] then
        return obstacles[n]
      end
    end
  end
  return nil
end

local function store(e)
  local ms = monotonic_ms()
  local number = counter()
  local stamp = ms .. '-' .. number
  local messages, history = '-', '-'
  if #e.targets + #e.filtered == 0 then
    history = stamp
  elseif #e.targets + #e.filtered == 1 then
    messages = (e.targets[1] or e.filtered[1]).id
  else
    messages = '*'
  end
  local head = stamp .. ' ' .. messages .. ' ' .. e.org .. ' ' .. e.source .. ' ' .. history .. '\n'
  if not call('SET', P .. 'e:' .. e.id, head .. e.text, 'NX') then
    return 0
  end
  index_add(P .. 'i:ev:' .. e.org, ms, number, e.id)
  index_add(P .. 'i:' .. e.source, ms, number, e.id)
  if history ~= '-' then
    call('XADD', P .. 'fin', stamp, 'e', e.id)
  end
  local ids = {}
  local routes = {}
  for _, target in ipairs(e.targets) do
    local n = target_of(e.org, target.route, target.destination)
    number = counter()
    call('HSET', P .. 'm:' .. target.id, 'e', e.id, 't', n, 's', 'p', 'x', target.max, 'i', ms .. '-' .. number)
    index_add(P .. 'i:' .. e.org, ms, number, target.id)
    index_add(P .. 'i:' .. target.route, ms, number, target.id)
    index_add(P .. 'i:' .. target.destination, ms, number, target.id)
    opened = opened + 1
    local room = queue_room(target.destination)
    if room and room <= 0 then
      bury(target.id, e.org, 'queue_limit_exceeded')
    else
      enqueue(n, target.id)
      touched[n] = true
      rooms[target.destination] = room and room - 1
    end
    ids[#ids + 1] = target.id
    routes[target.route] = true
  end
  for _, filtered in ipairs(e.filtered) do
    local n = target_of(e.org, filtered.route, '')
    number = counter()
    stamp = ms .. '-' .. number
    call('HSET', P .. 'm:' .. filtered.id, 'e', e.id, 't', n, 's', 'f', 'x', '0', 'i', stamp, 'c', stamp)
    index_add(P .. 'i:' .. e.org, ms, number, filtered.id)
    index_add(P .. 'i:' .. filtered.route, ms, number, filtered.id)
    call('XADD', P .. 'fin', stamp, 'i', filtered.id)
    ids[#ids + 1] = filtered.id
  end
  if messages == '*' then
    call('SET', P .. 'x:' .. e.id, table.concat(ids, ' '))
    call('HSET', P .. 'refs', e.id, #ids)
  end
  count_event(e.org, e.source)
  for route in pairs(routes) do
    count_event(e.org, route)
  end
  return 1
end

local reply = {}
for _ = 1, tonumber(ARGV[1]) do
  local e = { id = argument(), org = argument(), source = argument(), text = argument(), targets = {}, filtered = {} }
  for k = 1, tonumber(argument()) do
    e.targets[k] = { id = argument(), route = argument(), destination = argument(), max = argument() }
  end
  for k = 1, tonumber(argument()) do
    e.filtered[k] = { id = argument(), route = argument() }
  end
  reply[#reply + 1] = obstacle(e) or store(e)
end
write_event_counts()
if opened > 0 then
  call('HINCRBY', ctl, 'open', opened)
end
local woke = false
for n in pairs(touched) do
  woke = activate(n) or woke
end
if woke then
  ring()
end
return reply
