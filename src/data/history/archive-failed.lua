#!lua flags=allow-oom
-- Gives an archive back that was taken and has not been written.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; error, nil when nothing has failed; first_delay_ms: the next try after the first failure comes so late;
-- the delay doubles up to max_delay_ms.
-- Reply: failures in a row.
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/archive.lua"
-- @include "../../redis/scripts/includes/json.lua"

local failure = decoded(ARGV[1])
local org = failure.org
local key = P .. 'ar:' .. org
if call('HEXISTS', P .. 'arc', org) == 0 then
  return 0
end
call('HDEL', key, F.archive.lease_end_ms)
if not failure.error then
  call('ZADD', P .. 'az', now, org)
  return tonumber(call('HGET', key, F.archive.failures) or '0')
end
local failures = call('HINCRBY', key, F.archive.failures, 1)
call('HSETNX', key, F.archive.failing_since_ms, integer(now))
call('HSET', key, F.archive.last_error, failure.error)
call('SADD', P .. 'arw', org)
local delay = math.min(failure.max_delay_ms, failure.first_delay_ms * 2 ^ math.min(30, failures - 1))
call('ZADD', P .. 'az', integer(now + delay), org)
note_oldest(org)
return failures
