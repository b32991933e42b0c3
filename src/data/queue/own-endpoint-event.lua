#!lua flags=allow-oom
-- Notes something about a webhook endpoint for Posthorn's own events, unless that, or something later, was noted before.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org, route and destination of the target; kind, F.own_events.disabled or F.own_events.disabling;
-- number, which grows with each thing of the kind that is to be noted; reason; message whose attempt is the cause, or `-`.
-- Reply: 1 noted; 0 it was before, or nobody receives own events of the target.
-- @include "../shard/includes/shard.lua"
-- @include "includes/own-events.lua"
-- @include "../../redis/scripts/includes/json.lua"

local note = decoded(ARGV[1])
local n = call('HGET', P .. 'tn:' .. note.org, note.route .. ' ' .. note.destination)
local noted = note.kind == F.own_events.disabled and F.target.noted_disabled or F.target.noted_disabling
local t = n and call('HMGET', P .. 't:' .. n, F.target.has_own_events, noted) or {}
if not t[1] or tonumber(t[2] or '0') >= note.number then
  return 0
end
call('HSET', P .. 't:' .. n, noted, note.number)
note_own(note.kind, note.org, note.route, note.destination, note.message, note.reason)
return 1
