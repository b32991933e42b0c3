#!lua flags=allow-oom
-- Gives an archive back that was taken and has not been written.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] organization, [2] why; '' when nothing has failed, [3] after how long (ms) it is tried again: after the first failure; it doubles up to
-- [4].
-- Reply: failures in a row.
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/archive.lua"

local org = ARGV[1]
local key = P .. 'ar:' .. org
if call('HEXISTS', P .. 'arc', org) == 0 then
  return 0
end
call('HDEL', key, F.archive.lease_end_ms)
if ARGV[2] == '' then
  call('ZADD', P .. 'az', now, org)
  return tonumber(call('HGET', key, F.archive.failures) or '0')
end
local failures = call('HINCRBY', key, F.archive.failures, 1)
call('HSETNX', key, F.archive.failing_since_ms, whole(now))
call('HSET', key, F.archive.last_error, ARGV[2])
call('SADD', P .. 'arw', org)
local delay = math.min(tonumber(ARGV[4]), tonumber(ARGV[3]) * 2 ^ math.min(30, failures - 1))
call('ZADD', P .. 'az', whole(now + delay), org)
note_oldest(org)
return failures
