#!lua flags=allow-oom
-- Ends the carrying of an entry of the outbox. A message that had come from a third shard leaves nothing behind.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] entry, [2] message that has moved, or ''.
-- Reply: 1, or 0 when another caller has ended it.
-- @include "../shard/includes/shard.lua"
-- @include "includes/outbox.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/remove.lua"
-- @include "includes/remote-holds.lua"
-- @include "includes/outbox-entries.lua"
-- @include "includes/attempt-details.lua"

-- A message that has moved, and is not here again, is unfinished elsewhere.
local function release_moved(f)
  local m = call('HMGET', P .. 'm:' .. f[F.outbox.message], F.message.status, F.message.outbox_entry, F.message.event)
  if m[1] == 'm' and m[2] == ARGV[1] then
    hold_event(m[3], nil, -1)
  end
end

local found = call('XRANGE', P .. 'out', ARGV[1], ARGV[1])[1]
if not found or not end_sending(ARGV[1]) then
  return 0
end
local f = fields_of(found)
if f[F.outbox.kind] == 'x' then
  far_release(f[F.outbox.event], f[F.outbox.shard] .. 'x')
elseif f[F.outbox.kind] == 'v' then
  release_moved(f)
end
if ARGV[2] ~= '' and home_of(ARGV[2]) then
  local key = P .. 'm:' .. ARGV[2]
  local m = call('HMGET', key, F.message.status, F.message.outbox_entry, F.message.event, F.message.detail_bytes)
  if m[1] == 'm' and m[2] == ARGV[1] then
    details.release(m[3], nil, m[4])
    call('DEL', key, P .. 'a:' .. ARGV[2])
    release_event(m[3])
  end
end
write_unfinished()
return 1
