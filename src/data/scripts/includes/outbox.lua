-- The outbox `out` of a shard: a stream of what has to be carried to other shards (outbox-carrier.ts). Every entry has s the shard,
-- a since when (ms), k its kind:
--   x  messages of an event are to be made there (or here, where there are many): e event, t lines `<message> <route> <destination> <attempts>` (the last as in new-message.lua).
--      Until it has arrived the event has `<shard>x` among its `far`, and `<shard>` while there is a copy.
--   w  further targets of an event are to be found (expand.lua): e event, f, u where the walk over them goes on and ends. The event has `<shard>w`
--      among its `far` meanwhile
--   v  a message moves there: m message, d destination
--   r  a message that came from there is gone: m message     g  the same of the copy of an event: e event
--   n  the event has one more message here, a replay: e event, m message
-- The key of a record whose id names another shard begins with the two characters of that shard: it has 27 characters.
local has_sent = false
local function send(shard, kind, ...)
  has_sent = true
  local entry = counter() .. '-1'
  call('XADD', P .. 'out', entry, 's', shard, 'a', whole(now), 'k', kind, ...)
  return entry
end

-- The fields of an entry as XRANGE answers it.
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
  return first and math.max(0, now - tonumber(fields_of(first).a))
end

-- The number of this shard.
local own_shard = string.match(P, '{s(%d+)}:$')

-- Takes an entry out; answers whether it was there.
local function end_sending(entry)
  if call('XDEL', P .. 'out', entry) == 0 then
    return false
  end
  if call('XLEN', P .. 'out') == 0 then
    call('DEL', P .. 'out')
  end
  return true
end

-- Shard and key at home of a record key that names another shard; nil for one of this shard.
local function home_of(key)
  if #key ~= 27 then
    return nil
  end
  return tonumber(string.sub(key, 1, 2), 36), string.sub(key, 3)
end
