#!lua
-- Makes messages of an event that were accepted in another shard, or in this one with many others.
-- Without allow-oom: what finds no room stays in the outbox.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): event; entry of this shard's own outbox, or `<shard>/<entry>` of another one; are_chunks_lost: chunks of
-- its payload are; targets {id of the message, route, destination, max number of attempts (as in new-message.lua)}. ARGV[2] text of the event, or the first line,
-- which is enough where the event is known.
-- Reply: how many messages were made; `full`: too much memory is in use; `text`: the whole text is needed;
-- `chunks`: chunks of its payload are not here.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/intern.lua"
-- @include "includes/new-message.lua"
-- @include "includes/event-copy.lua"
-- @include "includes/outbox-entries.lua"
-- @include "includes/ring-pools.lua"
-- @include "../shard/includes/hints.lua"
-- @include "../../redis/scripts/includes/json.lua"

local given = decoded(ARGV[1])
local event, text, entry, targets = given.event, ARGV[2], given.entry, given.targets
local org = string.match(text, '^%S+ %S+ (%S+) ')
local is_own = not string.find(entry, '/', 1, true)
if not org then
  if is_own and end_sending(entry) then
    hold_event(event, nil, -1)
    write_unfinished()
  end
  return 0
end
local seen = P .. 'seen:' .. entry
if not is_own and call('EXISTS', seen) == 1 then
  call('PEXPIRE', seen, seen_ms)
  return 0
end
if is_own and #call('XRANGE', P .. 'out', entry, entry) == 0 then
  return 0
end
if call('HGET', ctl, F.control.full) then
  return 'full'
end
if not is_own and not string.find(text, '\n', 1, true) and call('EXISTS', P .. 'e:' .. event) == 0 then
  return 'text'
end
if not is_own and lacks_chunks(event, text, given.are_chunks_lost) then
  return 'chunks'
end
for _, target in ipairs(targets) do
  require_lane(org, target.route, target.destination)
end
if is_own then
  if not end_sending(entry) then
    return 0
  end
  hold_event(event, org, -1)
else
  call('SET', seen, '1', 'PX', seen_ms)
  copy_event(event, text)
end
local made, touched, ids, applications = 0, {}, {}, {}
for _, target in ipairs(targets) do
  if call('EXISTS', P .. 'm:' .. target.id) == 0 then
    local n = intern(org, target.route, target.destination)
    ids[#ids + 1] = target.id
    if new_message(event, org, n, target) then
      touched[n] = true
    end
    made = made + 1
    if is_for_webhooks(org) and not applications[target.route] then
      applications[target.route] = true
      counters.event(org, target.route)
    end
  end
end
if not is_own then
  event_refs(event, ids)
end
if made > 0 then
  call('HINCRBY', ctl, F.control.open_messages, made)
end
counters.write()
write_status_counts()
write_unfinished()
activate_all(touched)
if hints.is_sooner then
  ring_all()
end
return made
