#!lua flags=allow-oom
-- Removes chunks of a payload that no event has named: what was to name them has failed.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] token, [2] bytes of the payload.
-- Reply: 1.
-- @include "includes/chunks.lua"

chunks.drop(ARGV[1], tonumber(ARGV[2]))
return 1
