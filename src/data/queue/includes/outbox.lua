-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/hints.lua"
-- @created-on-first-use

-- The outbox `out` of a shard: a stream of entries that the carrier (outbox-carrier.ts) takes to other shards. Every entry has
-- F.outbox.shard, F.outbox.since_ms and F.outbox.kind, which is one of:
--   x  messages of an event are to be made there (or here, where there are many): event, lines `<message> <route> <destination> <attempts>` (the last as in new-message.lua).
--      times where some have times, per line these (`;b…;x…`) or nothing. Workers of the release before ignore it: they make the messages without times.
--      Until it has arrived the event has `<shard>x` among its `far`, and `<shard>` while there is a copy.
--   w  find further targets of an event (expand.lua): event, walk_from and walk_until, between which the walk goes on. The event has `<shard>w`
--      among its `far` meanwhile
--   v  a message moves there: message, destination
--   r  a message that came from there is gone: message     g  the same of the copy of an event: event
--   f  a failover destination there is asked whether it takes messages again: event is the target whose messages ask, message the destination (failover.lua)
--   n  the event has one more message here, a replay: event, message
--   i  messages of an event that breaks the schemas of their routes are to be made here (import-invalid.lua): broken_event, lines
--      `<message> <route> <failed_for>` as in invalid-message.lua, reasons, a JSON list of what each breaks. The shard is `-`, and neither event nor message
--      is set: so workers of the release before leave the entry where it is, and carry the others. They would take a whole one for news and end it.
-- The key of a record whose id names another shard begins with the two characters of that shard: it has 27 characters.
local function send(shard, kind, ...)
  hints.outbox = 1
  local entry = new_entry()
  call('XADD', P .. 'out', entry, F.outbox.shard, shard, F.outbox.since_ms, integer(now), F.outbox.kind, kind, ...)
  return entry
end

-- Sends messages of an event to a shard: `lines` with their times behind the attempts.
local function send_messages(shard, event, lines)
  if not string.find(lines, ';', 1, true) then
    return send(shard, 'x', F.outbox.event, event, F.outbox.lines, lines)
  end
  local plain, times = {}, {}
  for line in string.gmatch(lines, '[^\n]+') do
    plain[#plain + 1] = string.gsub(line, ';%S*', '')
    times[#times + 1] = string.match(line, ';%S*') or ''
  end
  return send(shard, 'x', F.outbox.event, event, F.outbox.lines, table.concat(plain, '\n'), F.outbox.times, table.concat(times, '\n'))
end

-- Leaves messages of an event that breaks the schemas of their routes to be made here.
local function send_invalid(event, lines, reasons)
  return send('-', 'i', F.outbox.broken_event, event, F.outbox.lines, lines, F.outbox.reasons, reasons)
end

-- The number of this shard.
local function own_shard()
  return string.match(P, '{s(%d+)}:$')
end

-- Shard and key at home of a record key that names another shard; nil for one of this shard.
local function home_of(key)
  if #key ~= 27 then
    return nil
  end
  return tonumber(string.sub(key, 1, 2), 36), string.sub(key, 3)
end
