#!lua flags=no-writes
-- Targets that are paused, or for which something is queued or waits to be tried again: the named ones, or step by step those of routes. Or,
-- step by step, all targets of routes and destinations, and those whose messages go to one of the destinations once it serves (F.target.failover_awaited).
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] `n`, then triples of organization, route and destination; or ARGV[1] `r` or, for all targets, `a`, [2] organization, [3] cursor (begin with 0),
-- [4] how many targets to look at, then routes; with `a` also destinations.
-- Reply: {next cursor ('0' at the end), targets {number, org, route, destination, revision of its setting or ''}}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"

local found = {}
local function look(n, org, route, destination)
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.revision, F.target.paused_since_ms)
  if t[1] and (ARGV[1] == 'a' or t[3] or queued(n) > 0 or call('HEXISTS', P .. 'retries', n) == 1) then
    found[#found + 1] = { n, org, route, destination, t[2] or '' }
  end
end

if ARGV[1] == 'n' then
  for k = 2, #ARGV, 3 do
    local n = call('HGET', P .. 'tn:' .. ARGV[k], ARGV[k + 1] .. ' ' .. ARGV[k + 2])
    if n then
      look(n, ARGV[k], ARGV[k + 1], ARGV[k + 2])
    end
  end
  return { '0', found }
end
local org, named = ARGV[2], {}
for k = 5, #ARGV do
  named[ARGV[k]] = true
end
local function awaits(n)
  for destination in string.gmatch(call('HGET', P .. 't:' .. n, F.target.failover_awaited) or '', '%S+') do
    if named[destination] then
      return true
    end
  end
  return false
end
local scan = call('HSCAN', P .. 'tn:' .. org, ARGV[3], 'COUNT', ARGV[4])
for k = 1, #scan[2], 2 do
  local route, destination = string.match(scan[2][k], '^(%S+) (%S+)$')
  if route and (named[route] or ARGV[1] == 'a' and (named[destination] or awaits(scan[2][k + 1]))) then
    look(scan[2][k + 1], org, route, destination)
  end
end
return { scan[1], found }
