#!lua flags=no-writes
-- Which event bears a mark. Writes nothing.
--
-- KEYS: see includes/intake.lua.
-- ARGV[1] mark (hexadecimal), ARGV[2] window in milliseconds
-- Reply: {} (none in the window) | {state, event}; state: c claimed, r released, a accepted.
-- @include "includes/intake.lua"

local window = tonumber(ARGV[2])
local key, state, ms, event = find_mark(ARGV[1], window)
if key and ms > now - window then
  return { state, event }
end
return {}
