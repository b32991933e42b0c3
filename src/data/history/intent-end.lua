#!lua flags=allow-oom
-- Ends an intent that was carried out: gives back what was counted for messages that it did not make, and keeps its outcome for a day. Of
-- several calls one does so.
--
-- KEYS: see ../intake/includes/intake.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): id of the intent; made: number of messages that it made; outcome, nil to keep none; max_outcomes.
-- Reply: 1, or 0 when it has ended before.
-- @include "../intake/includes/intake.lua"
-- @include "includes/intents.lua"
-- @include "../../redis/scripts/includes/json.lua"

local ended = decoded(ARGV[1])
local intent = ended.id
local noted = call('HGET', open, intent)
if not noted then
  return 0
end
local month, counted = string.match(noted, '^(%S+) (%d+) ')
call('HDEL', open, intent)
local unused = tonumber(counted) - ended.made
if unused > 0 then
  call('HINCRBY', quota, month, -unused)
end
if ended.outcome then
  -- One outcome comes, so a few steps keep the bounds.
  for _ = 1, 8 do
    local oldest = call('ZRANGE', by_time, 0, 0, 'WITHSCORES')
    if not oldest[1] or (tonumber(oldest[2]) > now - outcome_kept_ms and call('ZCARD', by_time) < ended.max_outcomes) then
      break
    end
    call('ZREM', by_time, oldest[1])
    call('HDEL', outcomes, oldest[1])
  end
  call('HSET', outcomes, intent, ended.outcome)
  call('ZADD', by_time, integer(now), intent)
  call('PEXPIRE', outcomes, outcome_kept_ms)
  call('PEXPIRE', by_time, outcome_kept_ms)
end
return 1
