#!lua flags=no-writes
-- The tallies of an organization (includes/count.lua), which are not part of the statistics of periods yet.
--
-- KEYS: see includes/shard.lua. ARGV[1] organization.
-- Reply: {how many tallies were folded in this shard, tallies {period, hash as a flat list}}.
-- @include "includes/shard.lua"

local found = {}
for _, name in ipairs(call('SMEMBERS', P .. 'st:' .. ARGV[1] .. ':t')) do
  found[#found + 1] = { string.match(name, '^%d+'), call('HGETALL', P .. 'st:' .. ARGV[1] .. ':t' .. name) }
end
return { call('HGET', ctl, 'folds') or '0', found }
