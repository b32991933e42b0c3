#!lua flags=allow-oom
-- Stores whether an organization has an archive, and its destination. Messages that had finished before belong to the archive, too. The position of an
-- archive that ends is kept, for one that begins again.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] organization, [2] destination, or '' while there is none; absent: no archive.
-- Reply: 1.
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/archive.lua"

local org, destination = ARGV[1], ARGV[2]
if not destination then
  call('HDEL', P .. 'arc', org)
  call('ZREM', P .. 'az', org)
  call('SREM', P .. 'arw', org)
  call('HDEL', P .. 'ar:' .. org, F.archive.lease_end_ms, F.archive.failures, F.archive.failing_since_ms, F.archive.last_error, F.archive.lost,
    F.archive.last_loss_ms)
  note_oldest(org)
  return 1
end
local before = call('HGET', P .. 'arc', org)
call('HSET', P .. 'arc', org, destination)
if not before then
  call('HDEL', ctl, F.control.archive_position)
  if call('EXISTS', P .. 'fin:' .. org) == 1 then
    call('ZADD', P .. 'az', now, org)
  end
elseif before ~= destination then
  -- A new place may well do where the old one failed.
  call('HDEL', P .. 'ar:' .. org, F.archive.failures, F.archive.failing_since_ms, F.archive.last_error)
  if tonumber(call('HGET', P .. 'ar:' .. org, F.archive.lease_end_ms) or '0') <= now then
    call('ZADD', P .. 'az', 'XX', 'LT', now, org)
  end
end
return 1
