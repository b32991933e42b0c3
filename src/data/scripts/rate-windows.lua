-- Counts messages in windows that begin with their first message, unless one of them would hold too many: then nothing is counted.
-- KEYS[1]  hash of an application: c<ms> messages, e<ms> end of the window in milliseconds since the epoch
-- ARGV[1]  messages, then per window its length in milliseconds and the largest number of messages
-- Answers 0, or in how many milliseconds there is room. More than a window ever holds have room in one that is empty.
local count = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local wait, longest, writes = 0, 0, {}
for k = 2, #ARGV, 2 do
  local ms, most = tonumber(ARGV[k]), tonumber(ARGV[k + 1])
  local held = redis.call('HMGET', KEYS[1], 'c' .. ARGV[k], 'e' .. ARGV[k])
  local before, ends = tonumber(held[1] or '0'), tonumber(held[2] or '0')
  if ends <= now then
    before, ends = 0, now + ms
  end
  if before > 0 and before + count > most then
    wait = math.max(wait, ends - now)
  end
  longest = math.max(longest, ends - now)
  writes[#writes + 1] = 'c' .. ARGV[k]
  writes[#writes + 1] = string.format('%.0f', before + count)
  writes[#writes + 1] = 'e' .. ARGV[k]
  writes[#writes + 1] = string.format('%.0f', ends)
end
if wait > 0 then
  return wait
end
redis.call('HSET', KEYS[1], unpack(writes))
redis.call('PEXPIRE', KEYS[1], longest)
return 0
