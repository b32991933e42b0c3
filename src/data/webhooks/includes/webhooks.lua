-- What the scripts of the webhook store share; `webhook-keys.ts` describes the keys. KEYS[1] is `<prefix>{wh:<organization>}:ctl`, KEYS[2] `…:~`,
-- which never exists: while a Cluster moves the slot, one key is there and one is not, so Redis answers TRYAGAIN before the script begins.
-- KEYS[3] is `…:epoch`, where a leader calls.
--
-- A record is text: `<part of its id> {json}` of an application, `<part> <application> <place in its list> {json}` of an endpoint,
-- `<part> <endpoint> <event type> <place in its list> {json}` of a subscription.
local call = redis.call
local P = string.sub(KEYS[1], 1, -4)
local pair_width = 10

-- The epoch of a leader is the last argument: one that leads no more gets {'fenced', newest epoch}.
if KEYS[3] then
  local epoch = tonumber(table.remove(ARGV))
  local newest = tonumber(call('GET', KEYS[3]) or '0')
  if epoch < newest then
    return { 'fenced', string.format('%.0f', newest) }
  end
  if epoch > newest then
    -- A script without writes, and one that only reads while Redis is full, may not: the next one that may takes over.
    redis.pcall('SET', KEYS[3], string.format('%.0f', epoch))
  end
end

-- A whole number as decimal text; Lua itself writes 1e15 from 15 digits on.
local function integer(number)
  return string.format('%.0f', number)
end

-- Whoever keeps what matches an event keeps its version with it: `*` and event type ids. No version comes twice, not even after a loss of data.
-- Beside it stands what has changed last, F.webhook_versions.changes_of: ` <version>:<number>` of subscriptions, under `*` of applications, the newest at the end.
local now = call('TIME')
local version = now[1] .. '.' .. now[2]
local max_journal_bytes = 8192

-- `changes`: { name, number } one after the other.
local function bump(changes)
  local names, added = {}, {}
  for _, change in ipairs(changes) do
    local name = change[1]
    if not added[name] then
      added[name] = ''
      names[#names + 1] = name
    end
    added[name] = added[name] .. ' ' .. version .. ':' .. change[2]
  end
  for first = 1, #names, 200 do
    local last, fields, values = math.min(#names, first + 199), {}, {}
    for k = first, last do
      fields[#fields + 1] = F.webhook_versions.changes_of .. names[k]
    end
    local journals = call('HMGET', P .. 'v', unpack(fields))
    for k = first, last do
      local journal = (journals[k - first + 1] or '') .. added[names[k]]
      if #journal > max_journal_bytes then
        journal = string.match(journal, ' .*$', #journal - max_journal_bytes)
      end
      for _, value in ipairs({ names[k], version, fields[k - first + 1], journal or '' }) do
        values[#values + 1] = value
      end
    end
    call('HSET', P .. 'v', unpack(values))
  end
end

-- The number and the record behind an id; nothing when it is not there.
local function find(kind, id, number, part)
  local record = call('HGET', P .. kind, number)
  if record and string.sub(record, 1, #part + 1) == part .. ' ' then
    return number, record
  end
  local kept = call('HGET', P .. 'ids', id)
  record = kept and call('HGET', P .. kind, kept)
  if record then
    return kept, record
  end
end

-- A record that several are below is read once in a script; many are read at once.
local known = { ap = {}, ep = {}, sb = {}, tr = {} }
local function load(hash, fields)
  local kept, missing = known[hash], {}
  for _, field in ipairs(fields) do
    if kept[field] == nil then
      kept[field] = false
      missing[#missing + 1] = field
    end
  end
  for first = 1, #missing, 200 do
    local last = math.min(#missing, first + 199)
    local values = call('HMGET', P .. hash, unpack(missing, first, last))
    for k = first, last do
      kept[missing[k]] = values[k - first + 1]
    end
  end
end

local function record_of(hash, field)
  if known[hash][field] == nil then
    load(hash, { field })
  end
  return known[hash][field]
end

local function part_of(record)
  return string.match(record, '^%S+')
end

local above = { ep = { { 'ap', '^%S+ (%d+) ' } }, sb = { { 'ep', '^%S+ (%d+) ' }, { 'tr', '^%S+ %d+ (%d+) ' } } }

-- Reads ahead what the rows of these records are made of.
local function load_rows(kind, numbers)
  load(kind, numbers)
  for _, each in ipairs(above[kind] or {}) do
    local wanted = {}
    for _, number in ipairs(numbers) do
      local record = known[kind][number]
      if record then
        wanted[#wanted + 1] = string.match(record, each[2])
      end
    end
    if each[1] == 'tr' then
      load('tr', wanted)
    else
      load_rows(each[1], wanted)
    end
  end
end

-- Rows are what a reader makes an object of; nil where something above is deleted.
local function application_row(number, record)
  return { number, record }
end

local function endpoint_row(number, record)
  local application = string.match(record, '^%S+ (%d+) ')
  local over = record_of('ap', application)
  return over and { number, record, application, part_of(over) } or nil
end

local function subscription_row(number, record)
  local endpoint, event_type = string.match(record, '^%S+ (%d+) (%d+) ')
  local over = record_of('ep', endpoint)
  local row = over and endpoint_row(endpoint, over)
  local event_type_id = row and record_of('tr', event_type)
  return event_type_id and { number, record, endpoint, part_of(over), row[3], row[4], event_type_id } or nil
end

local row_of = { ap = application_row, ep = endpoint_row, sb = subscription_row }

local function pair(event_type, subscription)
  return struct.pack('>I4I6', tonumber(event_type), tonumber(subscription))
end

-- Where a pair that begins with these bytes stands among the pairs of an endpoint.
local function find_pair(packed, wanted)
  local at = string.find(packed, wanted, 1, true)
  while at and (at - 1) % pair_width ~= 0 do
    at = string.find(packed, wanted, at + 1, true)
  end
  return at
end

-- The pairs of an endpoint as a list of { event type, subscription }, numbers.
local function pairs_of(endpoint)
  local packed, found = call('HGET', P .. 'es', endpoint) or '', {}
  for at = 1, #packed, pair_width do
    local event_type, subscription = struct.unpack('>I4I6', packed, at)
    found[#found + 1] = { event_type, subscription }
  end
  return found
end

-- An event to one of its types matches otherwise from now on.
local function bump_event_types_of(endpoint)
  local subscriptions, numbers, changes = pairs_of(endpoint), {}, {}
  for k, each in ipairs(subscriptions) do
    numbers[k] = integer(each[1])
  end
  load('tr', numbers)
  for k, each in ipairs(subscriptions) do
    local id = known.tr[numbers[k]]
    if id then
      changes[#changes + 1] = { id, integer(each[2]) }
    end
  end
  bump(changes)
end
