#!lua
-- Stores events with their messages and queues them; the events of one tick in one call.
-- Without allow-oom: a full Redis refuses the whole call before its first write, which is the back-pressure of ingest.
--
-- KEYS: see ../shard/includes/shard.lua. Ids are without prefix and shard (the last 25 characters).
-- ARGV[1] number of events; then per event:
--   `<event> <organization> <source> <targets> <invalid> <filtered> <entries> <from> <until> <milliseconds>`: how many there are of each; where the walk over
--     further targets begins and ends, and for how long an answer is kept, or `-`; of one whose payload is in chunks (../shard/includes/chunks.lua), behind
--     that, `<token>/<bytes>`;
--   its text (see event-text.ts);
--   where it is kept: the response to a duplicate of the event;
--   per target `<message> <route> <destination> <largest number of attempts>` (this as in new-message.lua);
--   per message that breaks the schema of its route `<message> <route> <destination>`, the destination for whose alerts it counts as a failure, or `-`;
--     and what it breaks;
--   where the filters of some routes are not met the text of these results (../shard/packed-results.ts), and the routes, separated by blanks;
--   per entry for the outbox its shard, whether that is this one (1, 0), number of messages, the messages as the outbox has them, those of another
--     shard with their whole key; of messages that break the schemas of their routes the shard is `-`, and what each breaks follows as a JSON list;
--     where there are entries their messages one after the other, number of the routes of targets among them, these routes.
-- Reply: the text `full` when too much memory is in use (refresh-shard.lua); else per event: 1 stored, or its entries in the
-- outbox; 0 was stored already (a re-sent call); `look`: the accounts must be looked at first (byte-shares.ts); `over`: its account has more than its
-- share of Redis; `chunks`: some of its chunks are not there any more; or the text of what is in its way.
-- @include "includes/account.lua"
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/chunks.lua"
-- @include "includes/index.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/work.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/intern.lua"
-- @include "includes/new-message.lua"
-- @include "includes/outbox.lua"
-- @include "includes/ring-pools.lua"
-- @include "includes/invalid-message.lua"
-- @include "../shard/includes/hints.lua"
-- @include "../shard/includes/packed.lua"
-- @include "../feed/includes/feed.lua"

local state = call('HMGET', ctl, F.control.full, F.control.accounts_over, F.control.shares_lease, F.control.newest_index_ms)
if state[1] then
  return 'full'
end
newest_ms = state[4] or '0'
local over = accounts_of(state[2] or '')
local has_over = next(over) ~= nil
-- Unfinished bytes here up to which the accounts need no check; nil: there is no limit.
local lease = state[3] ~= '-' and tonumber(state[3] or '0') or nil
local unfinished = lease and tonumber(call('HGET', P .. 'ub', '*') or '0')

local arguments, position = ARGV, 1
local function argument()
  position = position + 1
  return arguments[position]
end

-- Numbers of the targets of this call by their organizations and names, and what the script has found out about them.
local numbers = {}
local nothing = {}
local obstacles = {}
local touched = {}
local opened = 0

-- `name`: `<route> <destination>`.
local function number_of(org, name)
  local known = numbers[org]
  if not known then
    known = {}
    numbers[org] = known
  end
  if not known[name] then
    known[name] = call('HGET', P .. 'tn:' .. org, name)
  end
  return known[name]
end

local function target_of(org, name, route, destination)
  local n = number_of(org, name) or intern(org, route, destination)
  numbers[org][name] = n
  return n
end

-- Whether the event has to wait for a check of the accounts (`look`), or its account is over its share (`over`). An event that is stored is neither, and so are
-- Posthorn's own events, which are few and needed most then.
local function refusal(e)
  if not has_over and not (lease and unfinished >= lease) then
    return nil
  end
  local is_alert = string.byte(e.org) == 126
  local why = not is_alert and (over[account_of(e.org)] and 'over' or lease and unfinished >= lease and 'look') or nil
  return why and call('EXISTS', P .. 'e:' .. e.id) == 0 and why or nil
end

-- What is in the way of storing the event, looked for before the first write.
local function obstacle(e)
  if e.token and not chunks.are_here(e.token, e.chunk_bytes) and call('EXISTS', P .. 'e:' .. e.id) == 0 then
    return 'chunks'
  end
  local made = e.targets
  for k = 1, #made do
    local n = number_of(e.org, made[k].name)
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

-- Puts messages that are made elsewhere, or here later, into the outbox. Returns how many will be here, the other shards as they are in `far`,
-- and the entries.
local function send_entries(e)
  local here, far, sent = 0, '', {}
  local entries = e.entries
  for k = 1, #entries do
    local entry = entries[k]
    sent[#sent + 1] = entry.reasons and send_invalid(e.id, entry.messages, entry.reasons) or send_messages(entry.shard, e.id, entry.messages)
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

-- The results of the routes whose filter is not met, however many, in one record. Returns its name.
local function store_filtered(e)
  local pack, stamp = packed.name_of(e.id), new_stamp(e.filtered)
  packed.store(pack, e.id, e.org, stamp, e.filtered, e.results)
  for route in string.gmatch(e.filtered_routes, '%S+') do
    counters.held_back(e.org, route, 1)
  end
  index_add(P .. 'i:' .. e.org, stamp, pack)
  index_add(P .. 'i:pk:' .. e.org, stamp, pack)
  call('XADD', P .. 'fin', stamp, F.entry.message, pack)
  return pack
end

-- The status of a new event in the feed, as ../feed/feed-row.ts has it.
local function feed_status(e)
  if #e.targets + #e.entries > 0 or e.from ~= '-' then
    return 'p'
  end
  return #e.invalid > 0 and 'v' or e.filtered > 0 and 'f' or 'n'
end

local function store(e)
  local stamp = new_stamp()
  local messages, history = '-', '-'
  local has_further = e.from ~= '-'
  local records = #e.targets + #e.invalid + (e.filtered > 0 and 1 or 0)
  if has_further or #e.entries > 0 or records > 1 then
    messages = '*'
  elseif records == 1 then
    local only = e.targets[1] or e.invalid[1]
    messages = only and only.id or packed.name_of(e.id)
  else
    history = stamp
  end
  local head = stamp .. ' ' .. messages .. ' ' .. e.org .. ' ' .. e.source .. ' ' .. history .. e.chunks .. '\n'
  if not call('SET', P .. 'e:' .. e.id, head .. e.text, 'NX') then
    if e.token then
      chunks.drop(e.token, e.chunk_bytes)
    end
    return 0
  end
  if e.token then
    chunks.name(e.token, e.chunk_bytes)
  end
  feed.event(e.org, e.id, e.source, feed_status(e))
  new_event(e.id, e.org, #head + #e.text + e.chunk_bytes + (e.filtered > 0 and packed.bytes_of(e.results) or 0))
  if e.answer then
    call('SET', P .. 'an:' .. e.id, e.answer, 'PX', e.kept_ms)
  end
  index_add(index_key('ev:' .. e.org), stamp, e.id)
  index_add(index_key(e.source), stamp, e.id)
  if history ~= '-' then
    call('XADD', P .. 'fin', stamp, F.entry.event, e.id)
  end
  local ids, routes, moved = {}, {}, nil
  local made, invalids, taken = e.targets, e.invalid, e.routes
  for k = 1, #made do
    local target = made[k]
    local n = target_of(e.org, target.name, target.route, target.destination)
    local is_queued, entry = new_message(e.id, e.org, n, target)
    if is_queued then
      touched[n] = true
    end
    if entry then
      moved = moved or {}
      moved[#moved + 1] = entry
    end
    opened = opened + 1
    ids[#ids + 1] = target.id
    routes[target.route] = true
  end
  for k = 1, #invalids do
    local invalid = invalids[k]
    store_invalid(e.id, e.org, target_of(e.org, invalid.route .. ' ', invalid.route, ''), invalid)
    ids[#ids + 1] = invalid.id
  end
  if e.filtered > 0 then
    ids[#ids + 1] = store_filtered(e)
  end
  local here = #ids
  local later, far, sent = send_entries(e)
  ids[#ids + 1] = e.later
  for k = 1, #taken do
    routes[taken[k]] = true
  end
  if has_further then
    sent[#sent + 1] = send(own_shard(), 'w', F.outbox.event, e.id, F.outbox.walk_from, e.from, F.outbox.walk_until, e['until'])
    far = far .. ' ' .. own_shard() .. 'w'
  end
  if far ~= '' then
    call('HSET', P .. 'far', e.id, far)
  end
  if #e.targets + #sent > 0 then
    hold_event(e.id, e.org, #sent)
    unfinished = unfinished and unfinished + #e.text + e.chunk_bytes + (e.filtered > 0 and packed.bytes_of(e.results) or 0)
  end
  if messages == '*' then
    call('SET', P .. 'x:' .. e.id, table.concat(ids, ' '))
    call('HSET', P .. 'refs', e.id, here + later)
  end
  counters.event(e.org, e.source)
  for route in pairs(routes) do
    counters.event(e.org, route)
  end
  for k = 1, moved and #moved or 0 do
    sent[#sent + 1] = moved[k]
  end
  return #sent > 0 and sent or 1
end

local match = string.match
local target_pattern = '^(%S+) ((%S+) (%S+)) (.+)$'
local head_pattern = '^(%S+) (%S+) (%S*) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (%S+)(.*)$'

local function event_of_arguments()
  local id, org, source, targets, invalid, filtered, entries, first, last, kept_ms, chunked = match(argument(), head_pattern)
  -- All fields are set at once, because a table is copied each time it grows.
  local e = {
    id = id,
    org = org,
    source = source,
    text = argument(),
    targets = {},
    invalid = invalid == '0' and nothing or {},
    filtered = filtered == '0' and 0 or tonumber(filtered),
    entries = entries == '0' and nothing or {},
    routes = entries == '0' and nothing or {},
    from = first,
    ['until'] = last,
    kept_ms = kept_ms,
    chunks = chunked,
    chunk_bytes = 0,
    answer = nil,
    token = nil,
  }
  if chunked ~= '' then
    e.token, e.chunk_bytes = string.match(e.chunks, '^ (%w+)/(%d+)$')
    e.chunk_bytes = tonumber(e.chunk_bytes)
  end
  if kept_ms ~= '-' then
    e.answer = argument()
  end
  for k = 1, tonumber(targets) do
    local message, name, route, destination, max = match(argument(), target_pattern)
    e.targets[k] = { id = message, route = route, destination = destination, max = max, name = name }
  end
  for k = 1, invalid == '0' and 0 or tonumber(invalid) do
    local message = {}
    message.id, message.route, message.failed_for = string.match(argument(), '^(%S+) (%S+) (%S+)$')
    message.why = argument()
    e.invalid[k] = message
  end
  if e.filtered > 0 then
    e.results, e.filtered_routes = argument(), argument()
  end
  for k = 1, entries == '0' and 0 or tonumber(entries) do
    local shard = argument()
    e.entries[k] = {
      shard = shard,
      is_here = argument() == '1',
      count = tonumber(argument()),
      messages = argument(),
      reasons = shard == '-' and argument() or nil,
    }
  end
  if #e.entries > 0 then
    e.later = argument()
    for k = 1, tonumber(argument()) do
      e.routes[k] = argument()
    end
  end
  return e
end

local reply = {}
for k = 1, tonumber(ARGV[1]) do
  local e = event_of_arguments()
  reply[k] = refusal(e) or obstacle(e) or store(e)
end
counters.write()
write_status_counts()
write_unfinished()
if opened > 0 then
  call('HINCRBY', ctl, F.control.open_messages, opened)
end
activate_all(touched)
if hints.ends == 1 or hints.is_sooner then
  -- Else an idle worker would look half a minute later.
  ring_all()
end
return reply
