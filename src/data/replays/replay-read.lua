#!lua flags=no-writes
-- Reads a replay. Writes nothing.
--
-- KEYS: see ../intake/includes/intake.lua. ARGV[1] identity.
-- Reply: {`<version> <JSON>`, number of its messages that have not been seen end}, or {}.
-- @include "../intake/includes/intake.lua"
-- @include "includes/replays.lua"

local state = call('HGET', states, ARGV[1])
return state and { state, call('SCARD', open_of(ARGV[1])) } or {}
