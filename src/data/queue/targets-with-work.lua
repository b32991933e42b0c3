#!lua flags=no-writes
-- Targets that are paused, or for which something is queued or waits to be tried again: the named ones, or step by step those of routes. Or,
-- step by step, all targets of routes and destinations, and those whose messages go to one of the destinations once it serves (F.target.failover_awaited).
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): targets {organization, route, destination}; or org, cursor (begin with 0), max_looks: targets to look at, ids of
-- routes, without_work: also targets without work, and those of the ids that are destinations.
-- Reply: {next cursor ('0' at the end), targets {number, org, route, destination, revision of its setting or ''}}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../../redis/scripts/includes/json.lua"

local wanted = decoded(ARGV[1])
local found = {}
local function look(n, org, route, destination)
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.revision, F.target.paused_since_ms)
  if t[1] and (wanted.without_work or t[3] or queued(n) > 0 or call('HEXISTS', P .. 'retries', n) == 1) then
    found[#found + 1] = { n, org, route, destination, t[2] or '' }
  end
end

if wanted.targets then
  for _, target in ipairs(wanted.targets) do
    local org, route, destination = unpack(target)
    local n = call('HGET', P .. 'tn:' .. org, route .. ' ' .. destination)
    if n then
      look(n, org, route, destination)
    end
  end
  return { '0', found }
end
local org, named = wanted.org, {}
for _, id in ipairs(wanted.ids) do
  named[id] = true
end
local function awaits(n)
  for destination in string.gmatch(call('HGET', P .. 't:' .. n, F.target.failover_awaited) or '', '%S+') do
    if named[destination] then
      return true
    end
  end
  return false
end
local scan = call('HSCAN', P .. 'tn:' .. org, wanted.cursor, 'COUNT', wanted.max_looks)
for k = 1, #scan[2], 2 do
  local route, destination = string.match(scan[2][k], '^(%S+) (%S+)$')
  if route and (named[route] or wanted.without_work and (named[destination] or awaits(scan[2][k + 1]))) then
    look(scan[2][k + 1], org, route, destination)
  end
end
return { scan[1], found }
