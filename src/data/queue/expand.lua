#!lua
-- Puts the further targets of an event that were found into the outbox, and moves on, or ends, the walk over the others, in one step.
-- Without allow-oom: what finds no room is found again later.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] entry of the outbox, [2] where the walk goes on, or '' at its end; then per entry that is to be made shard, how many messages, the messages as
-- the outbox has them.
-- Reply: the entries that stand for what is left, none when another caller has moved it on; `full`: too much memory is in use.
-- @include "../shard/includes/shard.lua"
-- @include "includes/outbox.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/remote-holds.lua"
-- @include "includes/event-list.lua"
-- @include "includes/outbox-entries.lua"
-- @include "includes/unfinished-changes.lua"

local found = call('XRANGE', P .. 'out', ARGV[1], ARGV[1])[1]
if not found then
  return {}
end
if call('HGET', ctl, F.control.full) then
  return 'full'
end
local f = fields_of(found)
local event, sent = f[F.outbox.event], {}
end_sending(ARGV[1])
if call('EXISTS', P .. 'e:' .. event) == 0 then
  return {}
end

for k = 3, #ARGV, 3 do
  local shard, count = ARGV[k], tonumber(ARGV[k + 1])
  sent[#sent + 1] = send_messages(shard, event, ARGV[k + 2])
  if shard == own_shard() then
    call('HINCRBY', P .. 'refs', event, count)
    count_messages(event, nil, count)
    unlisted(event)
    hold_event(event, nil, 1)
  else
    far_hold(event, shard)
  end
end

if ARGV[2] ~= '' then
  sent[#sent + 1] = send(own_shard(), 'w', F.outbox.event, event, F.outbox.walk_from, ARGV[2], F.outbox.walk_until, f[F.outbox.walk_until])
elseif not keep_without_messages(event, own_shard() .. 'w') then
  far_release(event, own_shard() .. 'w')
end
write_unfinished()
return sent
