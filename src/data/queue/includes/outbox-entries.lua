-- @include "../../shard/includes/shard.lua"

-- Entries that are in the outbox of the shard (outbox.lua).

-- The fields of an entry as XRANGE returns it.
local function fields_of(found)
  local fields = {}
  for k = 1, #found[2], 2 do
    fields[found[2][k]] = found[2][k + 1]
  end
  return fields
end

-- For how long (ms) the oldest entry waits; nil: there is none.
local function oldest_wait_ms()
  local first = call('XRANGE', P .. 'out', '-', '+', 'COUNT', 1)[1]
  return first and math.max(0, now - tonumber(fields_of(first)[F.outbox.since_ms]))
end

-- Whether an entry has not been carried yet.
local function is_sending(entry)
  return entry and #call('XRANGE', P .. 'out', entry, entry) > 0
end

-- Takes an entry out; returns whether it was there.
local function end_sending(entry)
  if call('XDEL', P .. 'out', entry) == 0 then
    return false
  end
  if call('XLEN', P .. 'out') == 0 then
    call('DEL', P .. 'out')
  end
  return true
end
