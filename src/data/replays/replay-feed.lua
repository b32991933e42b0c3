#!lua flags=allow-oom
-- Writes a row of a replay into the live feed of the shard, if somebody watches.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV: what `feed.replay` takes (`replayRowFields` of ../feed/feed-row.ts).
-- Reply: nil.
-- @include "../feed/includes/feed.lua"

feed.replay(unpack(ARGV))
