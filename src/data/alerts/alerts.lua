#!lua flags=allow-oom
-- Decides about the alerts of a route: counts failures in a row, opens windows, and keeps what is to be sent until it is confirmed.
-- Entries of the log that were counted before are passed over, so that a call may be sent again.
--
-- KEYS: see ../shard/includes/shard.lua; the shard is the home of the route's alerts, wherever its targets are.
-- ARGV[1] by name (namedArgument in src/redis/script.ts):
--   org, '' where it is unknown; route; its destinations
--   wanted: letters of the alerts that are wanted, in the order in which they go; '' forgets everything
--   failure_threshold: failures in a row before the first alert
--   window_ms: length of a window; confirm_ms: after which what is not confirmed is due again
--   log {shard, marker} of the entries
--   incidents: what the alerts that are confirmed have made of them: `opened`, `closed`, absent: nothing
--   pagers {channel_id, routing_key}: channels that have incidents and get the route's alerts
--   confirmed {field, number, decided_at_ms}
--   entries of the log {entry, destination_id, at_ms, kind, count, message_id}
-- Reply: {ms until the next call is due or -1; alerts to send: letter, number, 1 while something of the route is broken or it has not recovered,
-- time, how many, first time, last time, destination, message; incidents to close: channel, number, time, key; organization}.
--
-- `al:<route>` hash: F.alerts has what waits, F.alert_state the rest; earlier releases write no time of a position. `alr:<organization>` set of the routes that
-- have one, `incidents` set `<channel> <route>`, `alerts` sorted set of the routes by when they are due.
-- @include "../shard/includes/shard.lua"
-- @include "../../redis/scripts/includes/json.lua"

local given = decoded(ARGV[1])
local route, wanted = given.route, given.wanted
local threshold, window_ms, again_ms = given.failure_threshold, given.window_ms, given.confirm_ms
local key = P .. 'al:' .. route
local org = given.org ~= '' and given.org or call('HGET', key, F.alert_state.organization) or ''
local letters = { F.alerts.failed, F.alerts.succeeded, F.alerts.recovered, F.alerts.opened, F.alerts.closed }

local state = {}
local stored = call('HGETALL', key)
for k = 1, #stored, 2 do
  state[stored[k]] = stored[k + 1]
end

local function set(field, value)
  if state[field] ~= value then
    state[field] = value
    call('HSET', key, field, value)
  end
end

local function unset(field)
  if state[field] then
    state[field] = nil
    call('HDEL', key, field)
  end
end

local function has_any(prefix)
  for field in pairs(state) do
    if string.sub(field, 1, 2) == prefix then
      return true
    end
  end
  return false
end

-- Adds to what waits under a letter.
local function occur(letter, count, first, last, destination, message)
  if string.find(wanted, letter, 1, true) then
    local before, since = string.match(state[letter] or '', '^(%d+) (%d+) ')
    local total = integer(tonumber(before or '0') + count)
    set(letter, total .. ' ' .. (since or first) .. ' ' .. last .. ' ' .. destination .. ' ' .. message)
  end
end

local function count_failures(destination, at, count, message)
  local before, since = string.match(state[F.alert_state.failures_of .. destination] or '', '^(%d+) (%d+)$')
  local total, first = tonumber(before or '0') + count, since or at
  set(F.alert_state.failures_of .. destination, integer(total) .. ' ' .. first)
  if state[F.alert_state.alerted_of .. destination] then
    occur(F.alerts.failed, count, at, at, destination, message)
  elseif total >= threshold then
    set(F.alert_state.alerted_of .. destination, '1')
    occur(F.alerts.failed, total, first, at, destination, message)
  end
end

local function count_successes(destination, at, count, message)
  unset(F.alert_state.failures_of .. destination)
  occur(F.alerts.succeeded, count, at, at, destination, message)
  if state[F.alert_state.alerted_of .. destination] or state[F.alert_state.departed_broken] then
    unset(F.alert_state.alerted_of .. destination)
    if not has_any(F.alert_state.alerted_of) then
      unset(F.alert_state.departed_broken)
      occur(F.alerts.recovered, 1, at, at, destination, message)
    end
  end
end

-- What belongs to destinations that have left the route. What was broken there the route recovers from with its next delivery.
local destinations = {}
for _, destination in ipairs(given.destinations) do
  destinations[destination] = true
end
local of_destination = { [F.alert_state.failures_of] = true, [F.alert_state.alerted_of] = true, [F.alert_state.open_circuit_of] = true }
local function forget_departed()
  local was_broken = false
  for field in pairs(state) do
    local kind = string.sub(field, 1, 2)
    if of_destination[kind] and not destinations[string.sub(field, 3)] then
      unset(field)
      was_broken = was_broken or kind ~= F.alert_state.failures_of
    end
  end
  if was_broken then
    set(F.alert_state.departed_broken, '1')
  end
end

-- What is left of a route that wants no alerts: its incidents.
local function forget_alerts()
  for field in pairs(state) do
    local kind = string.sub(field, 1, 2)
    if kind ~= F.alert_state.incident_of and kind ~= F.alert_state.closing_of then
      unset(field)
    end
  end
end

local function note_incidents()
  local keys = {}
  for _, pager in ipairs(given.pagers) do
    keys[pager.channel_id] = pager.routing_key
  end
  for channel, incident_key in pairs(keys) do
    if given.incidents == 'opened' then
      set(F.alert_state.incident_of .. channel, incident_key)
      unset(F.alert_state.closing_of .. channel)
      call('SADD', P .. 'incidents', channel .. ' ' .. route)
    elseif given.incidents == 'closed' and state[F.alert_state.incident_of .. channel] then
      unset(F.alert_state.incident_of .. channel)
      call('SREM', P .. 'incidents', channel .. ' ' .. route)
    end
  end
  local left = {}
  for field, incident_key in pairs(state) do
    local channel = string.match(field, '^' .. F.alert_state.incident_of .. '(.+)$')
    if channel and not keys[channel] then
      left[channel] = incident_key
    end
  end
  for channel, incident_key in pairs(left) do
    unset(F.alert_state.incident_of .. channel)
    call('SREM', P .. 'incidents', channel .. ' ' .. route)
    set(F.alert_state.closing_of .. channel, counter() .. ' ' .. integer(now) .. ' ' .. incident_key)
  end
end

if wanted == '' then
  forget_alerts()
end
forget_departed()
note_incidents()

for _, each in ipairs(given.confirmed) do
  local field = each.field
  local number, decided = string.match(state[field] or '', string.sub(field, 1, 2) == F.alert_state.closing_of and '^(%d+) (%d+) ' or '^(%d+) %d (%d+) ')
  -- A failover may give a number out twice, at different times.
  if number == each.number and decided == integer(each.decided_at_ms) then
    unset(field)
  end
end

local position = F.alert_state.position_of .. given.log.shard
local position_time = F.alert_state.position_time_of .. given.log.shard
local marker, counted = string.match(state[position] or '', '^(%S+) (%d+)$')
counted = marker == given.log.marker and tonumber(counted) or -1
local timed, counted_ms = string.match(state[position_time] or '', '^(%d+) (%d+)$')
counted_ms = tonumber(timed or '') == counted and tonumber(counted_ms) or math.huge
local has_counted = false

-- Moves the position on to an entry; answers false when that is counted already. After a failover an entry may have a lower number than those before
-- it, and then has a later time. The clock may be set back while numbers grow.
local function moves_on(number, ms)
  if number <= counted and ms <= counted_ms then
    return false
  end
  counted_ms = number > counted and counted_ms < math.huge and math.max(counted_ms, ms) or ms
  counted = number
  has_counted = true
  return true
end

for _, each in ipairs(wanted == '' and {} or given.entries) do
  local number, ms = string.match(each.entry, '^(%d+)-(%d+)$')
  local destination, at, kind, count, message = each.destination_id, integer(each.at_ms), each.kind, each.count, each.message_id
  if moves_on(tonumber(number), tonumber(ms)) then
    if kind == 'f' then
      count_failures(destination, at, count, message)
    elseif kind == 's' then
      count_successes(destination, at, count, message)
    elseif kind == 'o' then
      set(F.alert_state.open_circuit_of .. destination, '1')
      occur(F.alerts.opened, 1, at, at, destination, message)
    elseif state[F.alert_state.open_circuit_of .. destination] then
      unset(F.alert_state.open_circuit_of .. destination)
      occur(F.alerts.closed, 1, at, at, destination, message)
    end
  end
end
if has_counted then
  set(position, given.log.marker .. ' ' .. integer(counted))
  set(position_time, integer(counted) .. ' ' .. integer(counted_ms))
end

forget_departed()

local broken = (has_any(F.alert_state.alerted_of) or has_any(F.alert_state.open_circuit_of) or state[F.alert_state.departed_broken]) and '1' or '0'
local sent, due = {}, nil
local function note_due(ms)
  due = due and math.min(due, ms) or ms
end
local function ends_at(letter)
  local ms = tonumber(state[letter .. F.alert_state.window_end] or '0')
  -- A clock that was set back must not hold alerts up.
  return ms > now + window_ms and 0 or ms
end
for _, letter in ipairs(letters) do
  if not string.find(wanted, letter, 1, true) then
    unset(letter)
    unset(letter .. F.alert_state.sending)
  end
  if state[letter] and not state[letter .. F.alert_state.sending] and ends_at(letter) <= now then
    set(letter .. F.alert_state.sending, counter() .. ' ' .. broken .. ' ' .. integer(now) .. ' ' .. state[letter])
    set(letter .. F.alert_state.window_end, integer(now + window_ms))
    unset(letter)
  end
  if state[letter .. F.alert_state.sending] then
    local alert = { letter }
    for part in string.gmatch(state[letter .. F.alert_state.sending], '%S+') do
      alert[#alert + 1] = part
    end
    sent[#sent + 1] = alert
    note_due(now + again_ms)
  elseif state[letter] then
    note_due(ends_at(letter))
  end
end

local closed = {}
for field, value in pairs(state) do
  local channel = string.match(field, '^' .. F.alert_state.closing_of .. '(.+)$')
  if channel then
    local number, ms, incident_key = string.match(value, '^(%d+) (%d+) (.*)$')
    closed[#closed + 1] = { channel, number, ms, incident_key }
    note_due(now + again_ms)
  end
end

if wanted == '' and #closed == 0 then
  call('DEL', key)
  call('SREM', P .. 'alr:' .. org, route)
elseif next(state) then
  set(F.alert_state.organization, org)
  call('SADD', P .. 'alr:' .. org, route)
end
if due then
  call('ZADD', P .. 'alerts', integer(due), route)
else
  call('ZREM', P .. 'alerts', route)
end
return { due and math.max(0, due - now) or -1, sent, closed, org }
