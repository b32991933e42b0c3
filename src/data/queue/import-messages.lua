#!lua
-- Makes messages of an event that were accepted in another shard, or in this one with many others.
-- Without allow-oom: what finds no room stays in the outbox.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] event, [2] its text, or the first line, which is enough where the event is known, [3] entry of this shard's own outbox, or
-- `<shard>/<entry>` of another one, [4] 1: chunks of its payload are lost, else ''; then per target message, route, destination, largest number of
-- attempts (as in new-message.lua).
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

local event, text, entry = ARGV[1], ARGV[2], ARGV[3]
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
if not is_own and lacks_chunks(event, text, ARGV[4]) then
  return 'chunks'
end
for k = 5, #ARGV, 4 do
  require_lane(org, ARGV[k + 1], ARGV[k + 2])
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
for k = 5, #ARGV, 4 do
  local target = { id = ARGV[k], route = ARGV[k + 1], destination = ARGV[k + 2], max = ARGV[k + 3] }
  if call('EXISTS', P .. 'm:' .. target.id) == 0 then
    local n = intern(org, target.route, target.destination)
    ids[#ids + 1] = target.id
    if new_message(event, org, n, target) then
      touched[n] = true
    end
    made = made + 1
    if is_for_webhooks(org) and not applications[target.route] then
      applications[target.route] = true
      count_event(org, target.route)
    end
  end
end
if not is_own then
  event_refs(event, ids)
end
if made > 0 then
  call('HINCRBY', ctl, F.control.open_messages, made)
end
write_counts()
write_status_counts()
write_unfinished()
activate_all(touched)
if hints.is_sooner then
  ring_all()
end
return made
