-- Counts requests in a window that begins with its first request.
-- KEYS[1]  counter of the credential or source
-- ARGV[1]  length of the window in milliseconds
-- ARGV[2]  how many requests
-- Answers {count including these requests, end of the window in milliseconds since the epoch}.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local count = redis.call('INCRBY', KEYS[1], ARGV[2])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], left)
end
return {count, now + left}
