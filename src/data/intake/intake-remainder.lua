#!lua flags=no-writes
-- How many messages an event may have so that the month is not exceeded. Writes nothing.
--
-- KEYS: see includes/intake.lua.
-- ARGV[1] mark of the event (hexadecimal) or '', ARGV[2] window in milliseconds, ARGV[3] month (YYYY-MM), ARGV[4] how many there may be in the month
-- Reply: {the number, step…}; of an event whose mark is claimed, and whose messages are counted with that, the number is all of the month. step…: untold_step() of
-- includes/intake.lua, for something that is refused because it is more.
-- @include "includes/intake.lua"

local mark, window, month, limit = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
if mark ~= '' then
  local key, state, ms = find_mark(mark, window)
  if key and ms > now - window and state ~= 'r' then
    return { limit }
  end
end
return { math.max(0, limit - tonumber(call('HGET', quota, month) or '0')), unpack(untold_step(month, limit, true)) }
