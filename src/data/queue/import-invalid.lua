#!lua
-- Makes the messages of an entry of this shard's outbox whose event breaks the schemas of their routes, and ends the entry.
-- Without allow-oom: what finds no room stays in the outbox.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] entry.
-- Reply: how many messages were made; `full`: too much memory is in use.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/count.lua"
-- @include "../shard/includes/hints.lua"
-- @include "includes/intern.lua"
-- @include "includes/invalid-message.lua"
-- @include "includes/outbox-entries.lua"
-- @include "includes/ring-pools.lua"
-- @include "includes/unfinished.lua"
-- @include "../../redis/scripts/includes/json.lua"

local entry = ARGV[1]
local found = call('XRANGE', P .. 'out', entry, entry)[1]
if not found then
  return 0
end
local f = fields_of(found)
local event = f[F.outbox.broken_event]
local head = redis.pcall('GETRANGE', P .. 'e:' .. event, 0, 255)
local org = type(head) == 'string' and string.match(head, '^%S+ %S+ (%S+) ') or nil
if org and call('HGET', ctl, F.control.full) then
  return 'full'
end
local reasons = decoded(f[F.outbox.reasons])
local made, position = 0, 0
for line in string.gmatch(org and f[F.outbox.lines] or '', '[^\n]+') do
  local id, route, failed_for = string.match(line, '^(%S+) (%S+) (%S+)$')
  position = position + 1
  if call('EXISTS', P .. 'm:' .. id) == 0 then
    store_invalid(event, org, intern(org, route, ''), { id = id, route = route, failed_for = failed_for, why = reasons[position] })
    made = made + 1
  end
end
-- At last: what an error cuts short is carried again.
end_sending(entry)
hold_event(event, org, -1)
counters.write()
write_unfinished()
if hints.ends == 1 then
  -- Else an idle worker would look half a minute later.
  ring_all()
end
return made
