#!lua
-- Stores events with their messages and queues them; the events of one tick in one call.
-- Without allow-oom: a full Redis refuses the whole call before its first write, which is the back-pressure of ingest.
--
-- KEYS: see includes/shard.lua. Ids are without prefix and shard (the last 25 characters).
-- ARGV[1] number of events; then per event: event, organization, source, text (see event-text.ts), number of targets, per
-- target message, route, destination, largest number of attempts (as in new-message.lua); number of filtered, per filtered message, route, `v` and what it breaks of
-- the route's schema, or `f`, when it does not meet the filter, and why that is not certain, and '' or the destination for whose alerts the
-- former counts; number of
-- entries for the outbox, per entry shard, whether it is this one (1, 0), number of messages, the messages as the outbox has them; where there are entries
-- their messages one after the other, number of their routes, the routes; '' or `<from> <until>`: where the
-- walk over further targets begins and ends; '' or `<milliseconds> <answer>`: what is to be answered, for so long, to whoever sends the event again. In
-- the entries messages of another shard have their whole key.
-- Reply: the text `full` when too much memory is in use (tend.lua); else per event: 1 stored, or its entries in the
-- outbox; 0 was stored already (a re-sent call); or the text of what stands in its way.
-- @include "includes/shard.lua"
-- @include "includes/index.lua"
-- @include "includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/ends.lua"
-- @include "includes/dead-letters.lua"
-- @include "includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/finish.lua"
-- @include "includes/intern.lua"
-- @include "includes/new-message.lua"
-- @include "includes/outbox.lua"

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

-- What stands in the way of storing the event, looked for before the first write.
local function obstacle(e)
  for _, target in ipairs(e.targets) do
    local n = number_of(e.org, target.route, target.destination)
    if n then
      if obstacles[n] == nil then
        obstacles[n] = lane_obstacle(n) or false
      end
      if obstacles[n] then
        return obstacles[n]
      end
    end
  end
  return nil
end

-- Puts messages that are made elsewhere, or here later, into the outbox. Answers how many will be here, the other shards as they stand in `far`,
-- and the entries.
local function send_entries(e)
  local here, far, sent = 0, '', {}
  for _, entry in ipairs(e.entries) do
    sent[#sent + 1] = send(entry.shard, 'x', 'e', e.id, 't', entry.messages)
    if entry.is_here then
      here = here + entry.count
    else
      far = far .. ' ' .. entry.shard .. 'x'
      if not string.find(far .. ' ', ' ' .. entry.shard .. ' ', 1, true) then
        far = far .. ' ' .. entry.shard
      end
    end
  end
  return here, far, sent
end

local function store(e)
  local ms = monotonic_ms()
  local number = counter()
  local stamp = ms .. '-' .. number
  local messages, history = '-', '-'
  if e.from or #e.entries > 0 or #e.targets + #e.filtered > 1 then
    messages = '*'
  elseif #e.targets + #e.filtered == 1 then
    messages = (e.targets[1] or e.filtered[1]).id
  else
    history = stamp
  end
  local head = stamp .. ' ' .. messages .. ' ' .. e.org .. ' ' .. e.source .. ' ' .. history .. '\n'
  if not call('SET', P .. 'e:' .. e.id, head .. e.text, 'NX') then
    return 0
  end
  if e.answer then
    call('SET', P .. 'an:' .. e.id, e.answer, 'PX', e.kept_ms)
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
    if new_message(e.id, e.org, n, target) then
      touched[n] = true
    end
    opened = opened + 1
    ids[#ids + 1] = target.id
    routes[target.route] = true
  end
  for _, filtered in ipairs(e.filtered) do
    local n = target_of(e.org, filtered.route, '')
    number = counter()
    stamp = ms .. '-' .. number
    local status, why = string.sub(filtered.how, 1, 1), string.sub(filtered.how, 2)
    call('HSET', P .. 'm:' .. filtered.id, 'e', e.id, 't', n, 's', status, 'x', '0', 'i', stamp, 'c', stamp)
    if why ~= '' then
      call('HSET', P .. 'm:' .. filtered.id, 'fm', why)
    end
    if status == 'v' then
      count_unsent(e.org, filtered.route)
      index_add(P .. 'i:fail:' .. filtered.route, ms, number, filtered.id)
      if filtered.failed_for ~= '' then
        note_end(filtered.route, filtered.failed_for, 'f', 1, filtered.id)
      end
    else
      count_held_back(e.org, filtered.route, 1)
    end
    index_add(P .. 'i:' .. e.org, ms, number, filtered.id)
    index_add(P .. 'i:' .. filtered.route, ms, number, filtered.id)
    call('XADD', P .. 'fin', stamp, 'i', filtered.id)
    ids[#ids + 1] = filtered.id
  end
  local here = #ids
  local later, far, sent = send_entries(e)
  ids[#ids + 1] = e.later
  for _, route in ipairs(e.routes) do
    routes[route] = true
  end
  if e.from then
    sent[#sent + 1] = send(own_shard, 'w', 'e', e.id, 'f', e.from, 'u', e['until'])
    far = far .. ' ' .. own_shard .. 'w'
  end
  if far ~= '' then
    call('HSET', P .. 'far', e.id, far)
  end
  if messages == '*' then
    call('SET', P .. 'x:' .. e.id, table.concat(ids, ' '))
    call('HSET', P .. 'refs', e.id, here + later)
  end
  count_event(e.org, e.source)
  for route in pairs(routes) do
    count_event(e.org, route)
  end
  return #sent > 0 and sent or 1
end

local function arguments_of_targets()
  local targets = {}
  for k = 1, tonumber(argument()) do
    targets[k] = { id = argument(), route = argument(), destination = argument(), max = argument() }
  end
  return targets
end

local reply = {}
for _ = 1, tonumber(ARGV[1]) do
  local e = { id = argument(), org = argument(), source = argument(), text = argument(), filtered = {}, entries = {}, routes = {} }
  e.targets = arguments_of_targets()
  for k = 1, tonumber(argument()) do
    e.filtered[k] = { id = argument(), route = argument(), how = argument(), failed_for = argument() }
  end
  for k = 1, tonumber(argument()) do
    e.entries[k] = { shard = argument(), is_here = argument() == '1', count = tonumber(argument()), messages = argument() }
  end
  if #e.entries > 0 then
    e.later = argument()
    for k = 1, tonumber(argument()) do
      e.routes[k] = argument()
    end
  end
  e.from, e['until'] = string.match(argument(), '^(%d+) (%d+)$')
  e.kept_ms, e.answer = string.match(argument(), '^(%d+) (.*)$')
  reply[#reply + 1] = obstacle(e) or store(e)
end
write_counts()
write_status_counts()
if opened > 0 then
  call('HINCRBY', ctl, 'open', opened)
end
activate_all(touched)
if has_ends then
  -- Else an idle worker would look at them half a minute later.
  ring_all()
end
return reply
