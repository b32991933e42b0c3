#!lua flags=allow-oom
-- Notes something about an organization itself for Posthorn's own events, unless that, or something later, was noted before.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; kind, F.own_events.replay_finished, quota_reached or secret_rotated; about: what it is about;
-- number, of the kind quota_reached, which grows with each thing that is to be noted; data (JSON); hop: the hops of the cause, or ''.
-- Reply: 1 noted; 0 it was before.
-- @include "../shard/includes/shard.lua"
-- @include "includes/own-events.lua"
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/ring-pools.lua"

local quota_note_kept_ms = 5356800000

local note = decoded(ARGV[1])
local key = P .. 'oe:' .. note.org
if note.kind == F.own_events.quota_reached then
  if tonumber(call('HGET', key, F.own_events.noted_quota) or '0') >= note.number then
    return 0
  end
  call('HSET', key, F.own_events.noted_quota, note.number)
  keep_own(key, quota_note_kept_ms)
end
note_own(note.kind, note.org, '-', note.about, '-', note.data, note.hop)
-- Without the bell an idle worker would read it half a minute later.
ring_all()
return 1
