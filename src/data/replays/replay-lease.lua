#!lua
-- Takes or renews the lease of a replay.
--
-- KEYS: see ../intake/includes/intake.lua. ARGV[1] identity, [2] worker, [3] duration in ms; 0: the worker releases the lease.
-- Reply: 1 the worker has the lease; 0 another worker has it, or nobody.
-- @include "../intake/includes/intake.lua"

local lease = P .. 'replay-lease:' .. ARGV[1]
local holder = call('GET', lease)
if holder and holder ~= ARGV[2] then
  return 0
end
if ARGV[3] == '0' then
  call('DEL', lease)
  return 0
end
call('SET', lease, ARGV[2], 'PX', ARGV[3])
return 1
