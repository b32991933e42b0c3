#!lua flags=allow-oom
-- Notes that a batch of an archive has been written: its messages may go when their retention is over.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] organization, [2] batch, [3] how many messages it had, [4] how many that wait are written at once, [5] and else after how long (ms).
-- Reply: 1, or 0 when somebody else has noted it.
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/archive.lua"

-- For so long it is told that messages were lost.
local told_ms = 3600000

local org = ARGV[1]
local key = P .. 'ar:' .. org
local a = call('HMGET', key, 'b', 'l', 'k', 'xa')
if a[1] ~= ARGV[2] then
  return 0
end
local waiting = math.max(0, tonumber(a[3] or '0') - tonumber(ARGV[3]))
call('HSET', key, 'p', a[2], 'k', waiting)
call('HDEL', key, 'b', 'l', 'y', 'd', 'u', 'f', 'fs', 'e')
if not a[4] or tonumber(a[4]) + told_ms <= now then
  call('HDEL', key, 'x', 'xa')
  call('SREM', P .. 'arw', org)
end
note_oldest(org)
local rest = call('XRANGE', P .. 'fin:' .. org, '(' .. a[2], '+', 'COUNT', 1)[1]
if not rest then
  call('ZREM', P .. 'az', org)
elseif waiting >= tonumber(ARGV[4]) then
  call('ZADD', P .. 'az', now, org)
else
  call('ZADD', P .. 'az', whole(math.max(now, tonumber(string.match(rest[1], '^%d+')) + tonumber(ARGV[5]))), org)
end
return 1
