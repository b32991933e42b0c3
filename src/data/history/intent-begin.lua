#!lua
-- Notes what shall be done to messages, before it is begun, and counts the messages that it makes against the month: one step, so that
-- both or none of it is there. A refusal writes nothing. Without allow-oom: a full Redis refuses it, as it refuses the messages.
--
-- KEYS: see ../intake/includes/intake.lua.
-- ARGV[1] intent, [2] what shall be done, [3] month (YYYY-MM), [4] number of messages, [5] how many there may be in the month, or '' (then they are
-- not counted), [6] most intents at a time
-- Reply: {'begun', what, step…} (of the first call with this intent); {'ended', outcome} (it was carried out, and its outcome is kept); {'quota', step…}: it
-- would exceed the month; {'many'}: too many intents are open. step…: untold_step() of ../intake/includes/intake.lua.
-- @include "../intake/includes/intake.lua"
-- @include "includes/intents.lua"

local intent, month = ARGV[1], ARGV[3]
local messages, limit = tonumber(ARGV[4]), tonumber(ARGV[5])

local outcome = outcome_of(intent)
if outcome then
  return {'ended', outcome}
end
local noted = call('HGET', open, intent)
if noted then
  return {'begun', what_of(noted)}
end
if call('HLEN', open) >= tonumber(ARGV[6]) then
  return {'many'}
end
if limit and tonumber(call('HGET', quota, month) or '0') + messages > limit then
  return {'quota', unpack(untold_step(month, limit, true))}
end
if limit then
  call('HINCRBY', quota, month, messages)
  expire_not_before(quota, month_kept_ms)
end
call('HSET', open, intent, month .. ' ' .. (limit and messages or 0) .. ' ' .. ARGV[2])
return {'begun', ARGV[2], unpack(untold_step(month, limit, false))}
