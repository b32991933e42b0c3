#!lua flags=allow-oom
-- Holds a run that a worker has begun without a schedule.
--
-- KEYS[1] `runs`, [2] `held`, [3] `ran`; see `cron-keys.ts`.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): id of the run; job; lost_after_ms; text of the run.
-- Reply: 1. Sent again it holds the same run from then on.
-- @include "../../redis/scripts/includes/json.lua"

local call = redis.call
local run = decoded(ARGV[1])
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
call('HSET', KEYS[1], run.id, run.text)
call('ZADD', KEYS[2], string.format('%.0f', now + run.lost_after_ms), run.id)
call('HSET', KEYS[3], run.job, string.format('%.0f', now))
return 1
