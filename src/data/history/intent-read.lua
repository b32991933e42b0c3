#!lua flags=no-writes
-- What is known of an intent. Writes nothing.
--
-- KEYS: see ../intake/includes/intake.lua. ARGV[1] intent.
-- Reply: {'begun', what}, {'ended', outcome} or {}.
-- @include "../intake/includes/intake.lua"
-- @include "includes/intents.lua"

local outcome = outcome_of(ARGV[1])
if outcome then
  return {'ended', outcome}
end
local noted = call('HGET', open, ARGV[1])
return noted and {'begun', what_of(noted)} or {}
