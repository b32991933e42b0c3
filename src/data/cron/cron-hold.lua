#!lua flags=allow-oom
-- Holds a run that a worker has begun without a schedule.
--
-- KEYS[1] `runs`, [2] `held`, [3] `ran`; see `cron-keys.ts`.
-- ARGV[1] run, [2] job, [3] after how many ms it counts as lost, [4] text of the run.
-- Reply: 1. Sent again it holds the same run from then on.
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
call('HSET', KEYS[1], ARGV[1], ARGV[4])
call('ZADD', KEYS[2], string.format('%.0f', now + tonumber(ARGV[3])), ARGV[1])
call('HSET', KEYS[3], ARGV[2], string.format('%.0f', now))
return 1
