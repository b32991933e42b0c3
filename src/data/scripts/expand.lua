#!lua flags=allow-oom
-- Moves on, or ends, the walk over further targets of an event, once those found so far are stored.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] entry of the outbox, [2] where the walk goes on, or '' at its end.
-- Reply: the entry that stands for the rest, '' when there is none, or somebody else has moved it on.
-- @include "includes/shard.lua"
-- @include "includes/index.lua"
-- @include "includes/outbox.lua"
-- @include "includes/dead-letters.lua"
-- @include "includes/remove.lua"
-- @include "includes/far.lua"

local found = call('XRANGE', P .. 'out', ARGV[1], ARGV[1])[1]
if not found or not end_sending(ARGV[1]) then
  return ''
end
local f = fields_of(found)
if ARGV[2] == '' then
  far_release(f.e, own_shard .. 'w')
  return ''
end
return send(own_shard, 'w', 'e', f.e, 'f', ARGV[2], 'u', f.u)
