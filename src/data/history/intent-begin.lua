#!lua
-- Notes what shall be done to messages, before it is begun, and counts the messages that it makes against the month: one step, so that
-- both or none of it is there. A refusal writes nothing. Without allow-oom: a full Redis refuses it, as it refuses the messages.
--
-- KEYS: see ../intake/includes/intake.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): intent; what shall be done; month (YYYY-MM); messages: their number; limit: how many there may be
-- in the month, absent: they are not counted; max_open: most intents at a time.
-- Reply: {'begun', what, step…} (of the first call with this intent); {'ended', outcome} (it was carried out, and its outcome is kept); {'quota', step…}: it
-- would exceed the month; {'many'}: too many intents are open. step…: untold_step() of ../intake/includes/intake.lua.
-- @include "../intake/includes/intake.lua"
-- @include "includes/intents.lua"
-- @include "../../redis/scripts/includes/json.lua"

local begun = decoded(ARGV[1])
local intent, month, messages, limit = begun.intent, begun.month, begun.messages, begun.limit

local outcome = outcome_of(intent)
if outcome then
  return {'ended', outcome}
end
local noted = call('HGET', open, intent)
if noted then
  return {'begun', what_of(noted)}
end
if call('HLEN', open) >= begun.max_open then
  return {'many'}
end
if limit and tonumber(call('HGET', quota, month) or '0') + messages > limit then
  return {'quota', unpack(untold_step(month, limit, true))}
end
if limit then
  call('HINCRBY', quota, month, messages)
  expire_not_before(quota, month_kept_ms)
end
call('HSET', open, intent, month .. ' ' .. (limit and messages or 0) .. ' ' .. begun.what)
return {'begun', begun.what, unpack(untold_step(month, limit, false))}
