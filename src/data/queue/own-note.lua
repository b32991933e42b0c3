#!lua flags=allow-oom
-- Notes something about a webhook endpoint for Posthorn's own events, unless that, or something later, was noted before.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] organization of the target, [2] route, [3] destination, [4] kind, `d` or `w` of includes/own-events.lua, [5] a number that grows with each thing of
-- the kind that is to be noted, [6] the reason, [7] the message whose attempt is the cause, or `-`.
-- Reply: 1 noted; 0 it was before, or nobody receives own events of the target.
-- @include "../shard/includes/shard.lua"
-- @include "includes/own-events.lua"

local n = call('HGET', P .. 'tn:' .. ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
local told = ARGV[4] == F.own_events.disabled and F.target.told_disabled or F.target.told_disabling
local t = n and call('HMGET', P .. 't:' .. n, F.target.has_own_events, told) or {}
if not t[1] or tonumber(t[2] or '0') >= tonumber(ARGV[5]) then
  return 0
end
call('HSET', P .. 't:' .. n, told, ARGV[5])
note_own(ARGV[4], ARGV[1], ARGV[2], ARGV[3], ARGV[7], ARGV[6])
return 1
