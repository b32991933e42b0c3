-- @include "../../../redis/scripts/includes/json.lua"

-- What publishing and retracting a record share.
-- KEYS[1] marker
-- KEYS[2] epoch
-- KEYS[3] sequence
-- KEYS[4] changes (stream)
-- KEYS[5] records of the kind (hash)
-- KEYS[6] owners: id of a record -> id of the organization that it belongs to for good (hash)
-- KEYS[7..] index of each index operation
-- ARGV[1] by name (namedArgument in src/redis/script.ts): epoch of the caller; marker to write when there is none; max_changes: length to which the stream is
--   trimmed, about; id of the record; org of the caller, nil: the record belongs to none; operations {operation, field} on the indexes, where the
--   operation is hset, hclaim (hset of a field that one organization has for itself), hdel, sadd or srem; change_keys
-- ARGV[2] record that the caller believes to be stored; empty: none
-- ARGV[3] record to store; empty: none
local call = redis.call
local change = decoded(ARGV[1])
local id, believed, wanted = change.id, ARGV[2], ARGV[3]
local stored_epoch = call('GET', KEYS[2])
local stored = call('HGET', KEYS[5], id) or ''

-- A missing or lower stored epoch means that Redis lost data: the caller's is taken.
local function is_fenced()
  return stored_epoch and tonumber(stored_epoch) > tonumber(change.epoch)
end

-- Whether a field of an index leads to a record of another organization.
local function is_of_another(index, field, org)
  local other = call('HGET', index, field)
  local record = other and other ~= id and call('HGET', KEYS[5], other)
  return record and decoded(record).org ~= org
end

local function change_index(index, operation, field)
  if operation == 'hset' or operation == 'hclaim' then
    call('HSET', index, field, id)
  elseif operation == 'sadd' then
    call('SADD', index, field)
  elseif operation == 'srem' then
    call('SREM', index, field)
  elseif call('HGET', index, field) == id then
    -- unless another record has taken the name meanwhile
    call('HDEL', index, field)
  end
end

local function next_sequence()
  local sequence = call('INCR', KEYS[3])
  if sequence > 1 then
    return sequence
  end
  -- The first number of a store is the time in microseconds: after a loss of all data no number repeats an old one, so
  -- readers that wait behind the old end of the stream wake up.
  local time = call('TIME')
  sequence = tonumber(time[1]) * 1000000 + tonumber(time[2])
  call('SET', KEYS[3], string.format('%.0f', sequence))
  return sequence
end

-- The index operations, the marker, and one entry in the stream.
local function finish()
  if stored_epoch ~= change.epoch then
    call('SET', KEYS[2], change.epoch)
  end
  call('SET', KEYS[1], change.marker, 'NX')
  for i, operation in ipairs(change.operations) do
    change_index(KEYS[6 + i], operation[1], operation[2])
  end
  local fields = {F.change_entry.marker, call('GET', KEYS[1])}
  for _, key in ipairs(change.change_keys) do
    fields[#fields + 1] = F.change_entry.key
    fields[#fields + 1] = key
  end
  call('XADD', KEYS[4], 'MAXLEN', '~', change.max_changes, string.format('%.0f-0', next_sequence()), unpack(fields))
end
