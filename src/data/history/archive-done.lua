#!lua flags=allow-oom
-- Notes that a batch of an archive has been written: its messages may go when their retention is over.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; batch; messages: how many it had; max_waiting: so many that wait are written at once; max_wait_ms: and
-- fewer after so long.
-- Reply: 1, or 0 when another worker has noted it.
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/archive.lua"
-- @include "../../redis/scripts/includes/json.lua"

-- For so long a loss of messages is reported.
local reported_ms = 3600000

local written = decoded(ARGV[1])
local org = written.org
local key = P .. 'ar:' .. org
local a = call('HMGET', key, F.archive.batch, F.archive.batch_last_stamp, F.archive.waiting, F.archive.last_loss_ms)
if a[1] ~= written.batch then
  return 0
end
local waiting = math.max(0, tonumber(a[3] or '0') - written.messages)
call('HSET', key, F.archive.written_stamp, a[2], F.archive.waiting, waiting)
call('HDEL', key, F.archive.batch, F.archive.batch_last_stamp, F.archive.batch_layout, F.archive.batch_destination, F.archive.lease_end_ms,
  F.archive.failures, F.archive.failing_since_ms, F.archive.last_error)
if not a[4] or tonumber(a[4]) + reported_ms <= now then
  call('HDEL', key, F.archive.lost, F.archive.last_loss_ms)
  call('SREM', P .. 'arw', org)
end
note_oldest(org)
local rest = call('XRANGE', P .. 'fin:' .. org, '(' .. a[2], '+', 'COUNT', 1)[1]
if not rest then
  call('ZREM', P .. 'az', org)
elseif waiting >= written.max_waiting then
  call('ZADD', P .. 'az', now, org)
else
  call('ZADD', P .. 'az', integer(math.max(now, tonumber(string.match(rest[1], '^%d+')) + written.max_wait_ms)), org)
end
return 1
