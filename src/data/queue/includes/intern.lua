-- @include "../../shard/includes/shard.lua"

-- The number of the target (route, destination) of an organization, given on first use.
local function intern(org, route, destination)
  local names, name = P .. 'tn:' .. org, route .. ' ' .. destination
  local n = call('HGET', names, name)
  if not n then
    n = whole(call('HINCRBY', ctl, 'tn', 1))
    call('HSET', names, name, n)
    call('HSET', P .. 't:' .. n, 'o', org, 'r', route, 'd', destination)
  end
  return n
end
