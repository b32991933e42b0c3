#!lua flags=allow-oom
-- Counts a repeated event of a source for the analytics.
--
-- KEYS: see ../shard/includes/shard.lua. ARGV[1] organization, ARGV[2] source.
-- Reply: 1.
-- @include "../shard/includes/count.lua"

counters.held_back(ARGV[1], ARGV[2], 1)
counters.write()
return 1
