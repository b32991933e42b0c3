-- @include "../../shard/includes/shard.lua"

-- The number of the target (route, destination) of an organization, given on first use.
local function intern(org, route, destination)
  local names, name = P .. 'tn:' .. org, route .. ' ' .. destination
  local n = call('HGET', names, name)
  if not n then
    n = integer(call('HINCRBY', ctl, F.control.last_target, 1))
    call('HSET', names, name, n)
    call('HSET', P .. 't:' .. n, F.target.organization, org, F.target.route, route, F.target.destination, destination)
  end
  return n
end
