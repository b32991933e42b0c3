-- Counts messages to applications in windows that begin with their first message, unless one of them would hold too many: then nothing is counted.
-- KEYS     per application a hash: F.rate_window with the length of a window behind it; its end is in milliseconds since the epoch
-- ARGV[1]  by name (namedArgument in src/redis/script.ts): sends per application, each {messages, windows {length in milliseconds, max number of messages}}
-- Reply: {0} | {milliseconds until there is room for all, the application (1, 2, …) that takes longest}. An empty window also has room for more messages than
-- it ever holds.
-- @include "../../redis/scripts/includes/json.lua"

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local given = decoded(ARGV[1])
local sends = given.sends
local wait, slowest, counted = 0, 0, {}
for application, key in ipairs(KEYS) do
  local count, longest, writes = sends[application].messages, 0, {}
  for _, window in ipairs(sends[application].windows) do
    local ms, max = window[1], window[2]
    local length = string.format('%.0f', ms)
    local count_field, end_field = F.rate_window.messages .. length, F.rate_window.end_ms .. length
    local held = redis.call('HMGET', key, count_field, end_field)
    local before, ends = tonumber(held[1] or '0'), tonumber(held[2] or '0')
    if ends <= now then
      before, ends = 0, now + ms
    end
    if before > 0 and before + count > max and ends - now > wait then
      wait, slowest = ends - now, application
    end
    longest = math.max(longest, ends - now)
    writes[#writes + 1] = count_field
    writes[#writes + 1] = string.format('%.0f', before + count)
    writes[#writes + 1] = end_field
    writes[#writes + 1] = string.format('%.0f', ends)
  end
  counted[application] = { longest = longest, writes = writes }
end
if wait > 0 then
  return { wait, slowest }
end
for application, key in ipairs(KEYS) do
  redis.call('HSET', key, unpack(counted[application].writes))
  redis.call('PEXPIRE', key, counted[application].longest)
end
return { 0 }
