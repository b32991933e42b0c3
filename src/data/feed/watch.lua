#!lua flags=allow-oom
-- Makes a shard write its live feed for ARGV[2] milliseconds more. When nobody has watched it until now an epoch begins: its feed begins with a row
-- that says nothing, so that each position is that of a row, and one whose row is gone has lost rows.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] the epoch, should one begin, [2] milliseconds, [3] a position, or ''.
-- Reply: {the epoch, the newest row, whether the row of the position is there (1, 0)}.
-- @include "../shard/includes/shard.lua"

-- The feed outlives the flag, so that it is never made by a row.
local margin_ms = 5000
local key = P .. 'feed'
local epoch = call('GET', P .. 'watch')
if not epoch or call('EXISTS', key) == 0 then
  epoch = ARGV[1]
  call('DEL', key)
  call('XADD', key, '*', '', '')
end
call('SET', P .. 'watch', epoch, 'PX', ARGV[2])
call('PEXPIRE', key, ARGV[2] + margin_ms)
local newest = call('XREVRANGE', key, '+', '-', 'COUNT', 1)
local is_there = ARGV[3] == '' or #call('XRANGE', key, ARGV[3], ARGV[3]) > 0
return { epoch, newest[1][1], is_there and 1 or 0 }
