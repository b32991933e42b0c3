#!lua flags=allow-oom
-- Ends an intent that was carried out: gives back what was counted for messages that it did not make, and keeps its outcome for a day. Of
-- several calls one does so.
--
-- KEYS: see ../intake/includes/intake.lua.
-- ARGV[1] intent, [2] number of messages that it made, [3] its outcome, or '' (none is kept), [4] most outcomes
-- Reply: 1, or 0 when it has ended before.
-- @include "../intake/includes/intake.lua"
-- @include "includes/intents.lua"

local intent, outcome = ARGV[1], ARGV[3]
local noted = call('HGET', open, intent)
if not noted then
  return 0
end
local month, counted = string.match(noted, '^(%S+) (%d+) ')
call('HDEL', open, intent)
local unused = tonumber(counted) - tonumber(ARGV[2])
if unused > 0 then
  call('HINCRBY', quota, month, -unused)
end
if outcome ~= '' then
  -- One outcome comes, so a few steps keep the bounds.
  for _ = 1, 8 do
    local oldest = call('ZRANGE', by_time, 0, 0, 'WITHSCORES')
    if not oldest[1] or (tonumber(oldest[2]) > now - outcome_kept_ms and call('ZCARD', by_time) < tonumber(ARGV[4])) then
      break
    end
    call('ZREM', by_time, oldest[1])
    call('HDEL', outcomes, oldest[1])
  end
  call('HSET', outcomes, intent, outcome)
  call('ZADD', by_time, whole(now), intent)
  call('PEXPIRE', outcomes, outcome_kept_ms)
  call('PEXPIRE', by_time, outcome_kept_ms)
end
return 1
