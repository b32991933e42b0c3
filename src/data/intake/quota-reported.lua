#!lua flags=allow-oom
-- Notes that a step of a month was told.
--
-- KEYS: see includes/intake.lua. ARGV[1] month (YYYY-MM), [2] step.
-- Reply: 1, or 0 when it, or a higher one, was noted before.
-- @include "includes/intake.lua"

local told = 'told:' .. ARGV[1]
if tonumber(call('HGET', quota, told) or '0') >= tonumber(ARGV[2]) then
  return 0
end
call('HSET', quota, told, ARGV[2])
expire_not_before(quota, month_kept_ms)
return 1
