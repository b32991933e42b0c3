#!lua flags=allow-oom
-- Makes routes due that have an incident open: after a change of them, or of the channel where it is open, it may have to be closed.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] number of routes, then routes, then channels; the channel `*` stands for all.
-- Reply: how many routes are due.
-- @include "../shard/includes/shard.lua"

local routes, channels = {}, {}
local last_route = 1 + tonumber(ARGV[1])
for k = 2, last_route do
  for _, field in ipairs(call('HKEYS', P .. 'al:' .. ARGV[k])) do
    routes[ARGV[k]] = routes[ARGV[k]] or string.find(field, '^i:') ~= nil
  end
end
for k = last_route + 1, #ARGV do
  channels[ARGV[k]] = true
end
if next(channels) then
  for _, incident in ipairs(call('SMEMBERS', P .. 'incidents')) do
    local channel, route = string.match(incident, '^(%S+) (%S+)$')
    if call('HEXISTS', P .. 'al:' .. route, 'i:' .. channel) == 0 then
      -- The route is forgotten.
      call('SREM', P .. 'incidents', incident)
    elseif channels['*'] or channels[channel] then
      routes[route] = true
    end
  end
end

local due = 0
for route, has_incident in pairs(routes) do
  if has_incident then
    due = due + 1
    call('ZADD', P .. 'alerts', whole(now), route)
  end
end
return due
