#!lua flags=allow-oom
-- Notes something about an organization itself for Posthorn's own events, unless that, or something later, was noted before.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] organization, [2] kind, `r`, `m` or `s` of includes/own-events.lua, [3] what it is about, [4] of the kind `m` a number that grows with each thing that is
-- to be noted, else '', [5] its data (JSON), [6] the hops of the cause, or ''.
-- Reply: 1 noted; 0 it was before.
-- @include "../shard/includes/shard.lua"
-- @include "includes/own-events.lua"
-- @include "includes/ring-pools.lua"

local key = P .. 'oe:' .. ARGV[1]
if ARGV[2] == F.own_events.quota_reached then
  if tonumber(call('HGET', key, F.own_events.told_quota) or '0') >= tonumber(ARGV[4]) then
    return 0
  end
  call('HSET', key, F.own_events.told_quota, ARGV[4])
  keep_own(key, own_number_kept_ms)
end
note_own(ARGV[2], ARGV[1], '-', ARGV[3], '-', ARGV[5], ARGV[6])
-- Else an idle worker would look at it half a minute later.
ring_all()
return 1
