#!lua flags=allow-oom
-- Removes targets whose route or destination was deleted, with their limiters. A target with a message stays, because messages have their organization and
-- route from their target.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; targets {route, destination, which may be '', is_route_gone, is_destination_gone}.
-- Reply: how many were removed.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../../redis/scripts/includes/json.lua"

local gone = decoded(ARGV[1])
local org = gone.org

local function is_used(n, route, destination)
  local index = P .. 'i:' .. (destination ~= '' and destination or route)
  return call('EXISTS', index, P .. 'w:' .. n, P .. 'w:' .. retry_lane(n), P .. 'bs:' .. n) > 0 or call('HEXISTS', P .. 'retries', n) == 1
end

local function remove_limiter(limiter)
  if call('EXISTS', P .. 'wait:' .. limiter) == 0 then
    call('DEL', P .. 'l:' .. limiter, P .. 'rate:' .. limiter, P .. 'lease:' .. limiter, P .. 'used:' .. limiter)
  end
end

local function remove_target(n)
  local blocked = call('HGET', P .. 't:' .. n, F.target.blocked_by)
  if blocked and blocked ~= 'cap' and blocked ~= '!' then
    call('ZREM', P .. 'wait:' .. blocked, n)
    if call('EXISTS', P .. 'wait:' .. blocked) == 0 then
      call('ZREM', P .. 'waiting', blocked)
    end
  end
  deactivate(n, org)
  call('ZREM', P .. 'waiting', '!' .. n)
  call('SREM', P .. 'broken', n)
  call('SREM', P .. 'paused', n)
  call('SREM', P .. 'ordered', n)
  call('HDEL', P .. 'un:' .. org, n)
  call('DEL', P .. 't:' .. n, P .. 'probe:' .. n, P .. 'ra:' .. n)
end

-- The queue limit of a destination counts all its targets.
local function leave_limiter(n, destination)
  local numbers = call('HGET', P .. 'l:' .. destination, F.limiter.targets)
  if numbers then
    local others = {}
    for other in string.gmatch(numbers, '%d+') do
      if other ~= n then
        others[#others + 1] = other
      end
    end
    call('HSET', P .. 'l:' .. destination, F.limiter.targets, table.concat(others, ' '))
  end
end

local removed = 0
for _, target in ipairs(gone.targets) do
  local route, destination = target.route, target.destination
  local name = route .. ' ' .. destination
  local n = call('HGET', P .. 'tn:' .. org, name)
  if n and not is_used(n, route, destination) then
    remove_target(n)
    call('HDEL', P .. 'tn:' .. org, name)
    if target.is_destination_gone then
      remove_limiter(destination)
    elseif destination ~= '' then
      leave_limiter(n, destination)
    end
    if target.is_route_gone then
      remove_limiter(route)
      call('HDEL', P .. 'un:' .. org, '*' .. route)
    end
    removed = removed + 1
  end
end
return removed
