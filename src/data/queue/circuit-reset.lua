#!lua flags=allow-oom
-- Closes the circuits of named targets in any state.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; route; destinations.
-- Reply: how many targets there are.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/circuit.lua"
-- @include "../../redis/scripts/includes/json.lua"

local known = 0
local closed = decoded(ARGV[1])
for _, destination in ipairs(closed.destinations) do
  local n = call('HGET', P .. 'tn:' .. closed.org, closed.route .. ' ' .. destination)
  if n and call('EXISTS', P .. 't:' .. n) == 1 then
    known = known + 1
    circuit_begin(n, 'c')
    circuit_release(n)
  end
end
ring_woken()
return known
