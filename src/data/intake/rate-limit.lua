-- Counts requests in a window that begins with its first request; requests that it has no room for are refused together and not counted.
-- KEYS[1]  counter of the organization or source
-- ARGV[1]  length of the window in milliseconds
-- ARGV[2]  how many requests
-- ARGV[3]  how many the window holds
-- Answers {1 or 0 (refused), count, end of the window in milliseconds since the epoch}.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
local allowed = count + tonumber(ARGV[2]) <= tonumber(ARGV[3])
if allowed then
  count = redis.call('INCRBY', KEYS[1], ARGV[2])
end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], left)
end
return {allowed and 1 or 0, count, now + left}
