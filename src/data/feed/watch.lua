#!lua flags=allow-oom
-- Makes a shard write its live feed for ARGV[2] milliseconds more. When nobody has watched it until now an epoch begins: its feed begins with a row
-- that says nothing, so that each position is that of a row.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] the epoch, should one begin, [2] milliseconds.
-- Reply: {the epoch, the newest row}.
-- @include "../shard/includes/shard.lua"

-- The feed outlives the flag, so that it is never made by a row.
local margin_ms = 5000
local key = P .. 'feed'
local epoch = call('GET', P .. 'watch')
if not epoch or call('EXISTS', key) == 0 then
  epoch = ARGV[1]
  call('DEL', key, P .. 'feed-old', P .. 'feed-moved', P .. 'feed-lost')
  call('HSET', P .. 'feed-lost', 'first', call('XADD', key, '*', '', ''))
end
call('SET', P .. 'watch', epoch, 'PX', ARGV[2])
for _, name in ipairs({ 'feed', 'feed-old', 'feed-moved', 'feed-lost' }) do
  call('PEXPIRE', P .. name, ARGV[2] + margin_ms)
end
local newest = call('XREVRANGE', key, '+', '-', 'COUNT', 1)
return { epoch, newest[1][1] }
