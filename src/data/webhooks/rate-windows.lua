-- Counts messages to applications in windows that begin with their first message, unless one of them would hold too many: then nothing is counted.
-- KEYS     per application a hash: c<ms> messages, e<ms> end of the window in milliseconds since the epoch
-- ARGV[1]  number of windows of each; then per application its messages and per window its length in milliseconds and the largest number of messages
-- Reply: {0} | {milliseconds until there is room for all, the application (1, 2, …) that takes longest}. An empty window also has room for more messages than
-- it ever holds.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local windows = tonumber(ARGV[1])
local wait, slowest, counted = 0, 0, {}
for application, key in ipairs(KEYS) do
  local at = 2 + (application - 1) * (1 + 2 * windows)
  local count, longest, writes = tonumber(ARGV[at]), 0, {}
  for k = at + 1, at + 2 * windows, 2 do
    local ms, max = tonumber(ARGV[k]), tonumber(ARGV[k + 1])
    local count_field, end_field = 'c' .. ARGV[k], 'e' .. ARGV[k]
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
