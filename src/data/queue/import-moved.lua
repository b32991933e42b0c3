#!lua
-- Takes in a message that moves to a destination of this shard. Where that cannot take it, it goes on to the next one at once, or back.
-- Without allow-oom: what finds no room stays in the outbox.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): message; event; from: where it comes from, `<shard>/<entry>`; org; route; destination; first: its first
-- destination; are_chunks_lost as in import-messages.lua; values: how many its hash has. ARGV[2] text of the event, ARGV[3] output of the transform or '',
-- ARGV[4…] the values, then those of the hash of its long attempts.
-- Reply: 1 taken in, 2 and something was put into the outbox, 0 it was before; `chunks`: chunks of the payload are not here.
-- @include "../shard/includes/shard.lua"
-- @include "includes/index.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/intern.lua"
-- @include "includes/event-copy.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/output.lua"
-- @include "includes/outbox-entries.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/receive.lua"
-- @include "includes/status-counts.lua"
-- @include "../shard/includes/hints.lua"
-- @include "includes/attempt-details.lua"
-- @include "includes/ring-pools.lua"
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/unfinished-changes.lua"

local moved = decoded(ARGV[1])
local id, event, text, from, org, route, destination = moved.message, moved.event, ARGV[2], moved.from, moved.org, moved.route, moved.destination
local output = ARGV[3]
local key = P .. 'm:' .. id
local seen = P .. 'seen:' .. id
if call('GET', seen) == from then
  call('PEXPIRE', seen, seen_ms)
  return 0
end
local before = call('HMGET', key, F.message.status, F.message.outbox_entry)
local state = before[1]
if state and state ~= 'm' then
  return 0
end
if not state and lacks_chunks(event, text, moved.are_chunks_lost) then
  return 'chunks'
end
require_lane(org, route, destination)
call('SET', seen, from, 'PX', seen_ms)
-- One that comes back before its leaving was noted holds its event still.
local is_held = state and is_sending(before[2])
if not state then
  copy_event(event, text)
  event_refs(event, { id })
end

if output ~= '' then
  local y, outputs = '1', P .. 'y:' .. event
  local other = call('HGET', outputs, route)
  if other and other ~= output then
    y = route .. ' ' .. id
  end
  if other ~= output then
    grow_event(event, org, #output)
  end
  call('HSET', outputs, output_field(y, route), output)
  call('HSET', key, F.message.has_output, y)
end
local last = 3 + moved.values
local is_back = destination == moved.first
local fields = { F.message.event, event, F.message.status, 'p' }
local why, scheduled_at = '', nil
-- The number of attempts, the max number, the deadline, and what stays true of its moves.
local stays = {
  [F.message.replay_of] = true,
  [F.message.attempts] = true,
  [F.message.max_attempts] = true,
  [F.message.expires_ms] = true,
  [F.message.attempts_before_move] = true,
  [F.message.move_reason] = true,
  [F.message.moves] = true,
  [F.message.left] = true,
  [F.message.attempts_at_first] = true,
}
for k = 4, last, 2 do
  local field, value = ARGV[k], ARGV[k + 1]
  if field == F.message.attempts then
    fields[4] = 'r'
    fields[#fields + 1], fields[#fields + 2] = F.message.due_ms, integer(now)
  elseif field == F.message.due_ms then
    scheduled_at = value
  elseif field == F.message.move_reason then
    why = value
  end
  -- Attempts have their numbers as fields.
  if stays[field] or string.find(field, '^%d') or (field == F.message.index_stamp and not state) then
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
end
if not state and not is_back then
  fields[#fields + 1] = F.message.first_destination
  fields[#fields + 1] = moved.first
end
if scheduled_at and fields[4] == 'p' then
  fields[#fields + 1], fields[#fields + 2] = F.message.due_ms, scheduled_at
end
call('HSET', key, unpack(fields))
local detail_bytes = 0
for k = last + 1, #ARGV, 2 do
  call('HSET', P .. 'a:' .. id, ARGV[k], ARGV[k + 1])
  if call('HEXISTS', key, ARGV[k]) == 1 then
    detail_bytes = detail_bytes + #ARGV[k + 1]
  end
end
details.arrived(id, event, org, detail_bytes)
local n = intern(org, route, destination)
call('HSET', key, F.message.target, n)
call('HDEL', key, F.message.shard, F.message.outbox_entry)
if is_back then
  call('HDEL', key, F.message.first_target, F.message.first_destination, F.message.move_reason)
else
  local stamp = new_stamp()
  index_add(P .. 'i:' .. destination, stamp, id)
  call('HSET', key, F.message.move_stamp, stamp)
end
call('HINCRBY', ctl, F.control.open_messages, 1)
if not is_held then
  hold_event(event, org, 1)
end
receive(id, n, org, why)
counters.write()
write_status_counts()
write_unfinished()
ring_woken()
if hints.is_sooner then
  ring_all()
end
return hints.outbox == 1 and 2 or 1
