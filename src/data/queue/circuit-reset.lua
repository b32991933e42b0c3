#!lua flags=allow-oom
-- Closes the circuits of named targets in any state.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] organization, then pairs of route and destination.
-- Reply: how many targets there are.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/circuit.lua"

local known = 0
for k = 2, #ARGV, 2 do
  local n = call('HGET', P .. 'tn:' .. ARGV[1], ARGV[k] .. ' ' .. ARGV[k + 1])
  if n and call('EXISTS', P .. 't:' .. n) == 1 then
    known = known + 1
    circuit_begin(n, 'c')
    circuit_release(n)
  end
end
ring_woken()
return known
