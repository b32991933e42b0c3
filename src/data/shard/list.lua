#!lua flags=no-writes
-- Reads a page of an index with the records of its messages, newest first. Of an index in which few entries match it looks at many, and reads the
-- records of those alone that may match.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts):
--   index: its key without the base of the shard
--   before {ms, number}: the entry before which to begin; from_ms: the oldest time
--   count: how many records at most; max_looks: how many entries to look at
--   kind: `m` with message records, `e` with events, `i` ids alone
--   statuses that may match: of messages letters, of events statuses, each with a space before and behind it; '' for all
--   of messages: reasons of dead letters, each with a space before and behind it; routes, destinations and event_types (names), several with spaces between
--   them; each '' for all; outcome: what is asked of their attempts (includes/outcomes.lua), absent for any
-- Routes, destinations and outcome of events are about their messages: an entry with messages here that may match has the first 1,000 of them behind its
-- record; one that may have some elsewhere, or has none at all, is there, too.
-- Reply: {ms and number of the last entry that was looked at, or '' and '' at the end of the index; how many were looked at; entries}. An entry is {ms,
-- number, id, record}; a message record is its hash with the route's names and the last attempt (see message-view.ts), an event is what event_head_view says.
-- @include "includes/shard.lua"
-- @include "includes/view.lua"
-- @include "includes/message-filter.lua"
-- @include "includes/packed.lua"
-- @include "../../redis/scripts/includes/json.lua"

local look = decoded(ARGV[1])
local key, ms, number, oldest = P .. look.index, integer(look.before.ms), look.before.number, integer(look.from_ms)
local kind, count, looks, wanted = look.kind, look.count, look.max_looks, look.statuses
local reasons, event_types = look.reasons, look.event_types
asked.narrow(look)
local found, bytes, messages, looked = {}, 0, 0, 0
local last_ms, last_number = '', ''

-- One that is in another shard, and a member of a batch that has not ended, may have any status that is not in the hash here.
local function may_match_status(m)
  if string.find(wanted, m[1], 1, true) or m[1] == 'm' then
    return true
  end
  return m[2] and string.find(wanted, '[par]') ~= nil
end

local function may_match(id, m)
  return (wanted == '' or may_match_status(m))
    and (reasons == '' or m[1] == 'm' or m[5] and string.find(reasons, ' ' .. m[5] .. ' ', 1, true) ~= nil)
    and asked.may_match(id, m)
end

-- The name of the source or event type is at the beginning of the second line of an event (event-text.ts).
local type_fits = {}
local function may_be_of_type(event)
  if type_fits[event] == nil then
    local name = string.match(call('GETRANGE', P .. 'e:' .. event, 0, 511), '^[^\n]*\n{"g":"([^"]*)"')
    type_fits[event] = not name or asked.is_one_of(event_types, name)
  end
  return type_fits[event]
end

local is_narrowed = wanted .. reasons .. event_types ~= '' or asked.is_narrow()
local function read_message(id)
  if is_narrowed then
    local m = call('HMGET', P .. 'm:' .. id, unpack(asked.fields))
    if not m[1] or not may_match(id, m) or event_types ~= '' and not may_be_of_type(m[3]) then
      return nil, true
    end
  end
  return message_view(id)
end

-- What may match of a pack whose entry has this stamp: the results before the position, the newest first.
local function results_before(entry_ms, first, name)
  local may_be_filtered = (wanted == '' or string.find(wanted, 'f', 1, true)) and reasons == ''
    and asked.may_be_result()
  local pack = may_be_filtered and packed.read(name)
  if not pack or event_types ~= '' and not may_be_of_type(pack.event) then
    return nil, {}
  end
  bytes = bytes + #pack.text
  local before = entry_ms == ms and math.min(number - first, pack.count) or pack.count
  local of_routes = asked.results(pack)
  if of_routes then
    local older = {}
    for _, result in ipairs(of_routes) do
      older[#older + 1] = result[1] < before and result or nil
    end
    return pack, older
  end
  -- So many are left for this page.
  local from = math.max(0, before - math.min(count - #found, looks - looked))
  local results, newest_first = packed.results(pack, from, before - from), {}
  for k = #results, 1, -1 do
    newest_first[#newest_first + 1] = results[k]
  end
  return pack, newest_first
end

local function has_room()
  -- A page of large headers, or of events with very many messages, ends early; its cursor leads on.
  return #found < count and looked < looks and bytes < 4194304 and messages < 10000
end

-- Returns whether there is room for more, as `add` does.
local function add_pack(entry_ms, first, name)
  local pack, results = results_before(entry_ms, tonumber(first), name)
  for _, result in ipairs(results) do
    last_ms, last_number, looked = entry_ms, integer(first + result[1]), looked + 1
    found[#found + 1] = { entry_ms, last_number, packed.member(name, result[1]), packed.view(pack, result) }
    if not has_room() then
      return false
    end
  end
  last_ms, last_number, looked = entry_ms, first, looked + 1
  return has_room()
end

local asked_of = {}
local function read_event(id)
  if asked.is_narrow() then
    local of_event = asked.of_event(id)
    messages = messages + of_event.looked
    if #of_event.ids == 0 and not of_event.is_open then
      return nil, true
    end
    asked_of[id] = of_event.ids
  end
  if wanted ~= '' then
    local status = event_status(id)
    if status and not string.find(wanted, ' ' .. status .. ' ', 1, true) then
      return nil, true
    end
  end
  return event_head_view(id)
end

local read = kind == 'e' and read_event or kind == 'm' and read_message or function() end

-- Returns whether there is room for more.
local function add(entry_ms, entry_number, id)
  if kind == 'm' and packed.is_pack(id) then
    return add_pack(entry_ms, entry_number, id)
  end
  last_ms, last_number, looked = entry_ms, entry_number, looked + 1
  local record, is_other = read(id)
  if record then
    found[#found + 1] = { entry_ms, entry_number, id, record }
    if kind == 'e' then
      found[#found][5] = asked_of[id]
      bytes = bytes + #record[1]
      -- Those that were asked for are counted.
      messages = messages + (asked_of[id] and 0 or record[6])
    end
  elseif not is_other then
    found[#found + 1] = { entry_ms, entry_number, id }
  end
  return has_room()
end

local function walk_set(range)
  for k = 1, #range, 2 do
    local entry_number = tonumber(string.sub(range[k], 1, 13))
    local entry_ms = integer(tonumber(range[k + 1]))
    if entry_ms ~= ms or entry_number < number then
      if not add(entry_ms, integer(entry_number), string.sub(range[k], 14)) then
        return false
      end
    end
  end
  return true
end

local type = call('TYPE', key).ok
if type == 'stream' then
  for _, entry in ipairs(call('XREVRANGE', key, '(' .. ms .. '-' .. integer(number), oldest, 'COUNT', looks)) do
    local entry_ms, entry_number = string.match(entry[1], '^(%d+)-(%d+)$')
    if not add(entry_ms, entry_number, entry[2][2]) then
      break
    end
  end
elseif type == 'zset' then
  -- What is of the same millisecond as the position is more than was looked at before; all else is older.
  local goes_on = tonumber(ms) < tonumber(oldest) or walk_set(call('ZRANGE', key, ms, ms, 'BYSCORE', 'REV', 'WITHSCORES'))
  if goes_on then
    walk_set(call('ZRANGE', key, '(' .. ms, oldest, 'BYSCORE', 'REV', 'LIMIT', 0, looks, 'WITHSCORES'))
  end
end
return { last_ms, last_number, looked, found }
