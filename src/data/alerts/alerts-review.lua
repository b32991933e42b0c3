#!lua flags=allow-oom
-- Makes routes due that have an incident open: after a change of them, or of the channel where it is open, it may have to be closed.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): routes; channels; the channel `*` stands for all.
-- Reply: how many routes are due.
-- @include "../shard/includes/shard.lua"
-- @include "../../redis/scripts/includes/json.lua"

local routes, channels = {}, {}
local look = decoded(ARGV[1])
for _, route in ipairs(look.routes) do
  for _, field in ipairs(call('HKEYS', P .. 'al:' .. route)) do
    routes[route] = routes[route] or string.sub(field, 1, 2) == F.alert_state.incident_of
  end
end
for _, channel in ipairs(look.channels) do
  channels[channel] = true
end
if next(channels) then
  for _, incident in ipairs(call('SMEMBERS', P .. 'incidents')) do
    local channel, route = string.match(incident, '^(%S+) (%S+)$')
    if call('HEXISTS', P .. 'al:' .. route, F.alert_state.incident_of .. channel) == 0 then
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
    call('ZADD', P .. 'alerts', integer(now), route)
  end
end
return due
