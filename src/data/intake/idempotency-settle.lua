-- Ends or renews a claim that is still ours.
-- KEYS[1]  hash of claims and answers, as in idempotency-claim.lua
-- KEYS[2]  sorted set of the keys
-- KEYS[3]  sorted set of those that are spare
-- ARGV[1]  the key
-- ARGV[2]  token of the claim
-- ARGV[3]  'answer' keeps ARGV[4], 'release' forgets the key, 'renew' lets the claim hold for ARGV[4] milliseconds more
-- ARGV[5]  how long the answer is kept, in milliseconds; with 'answer'
-- ARGV[6]  1 when it is spare, else 0; with 'answer'
-- Returns 1, or 0 when the claim is no longer ours.
local answers, order, spare = KEYS[1], KEYS[2], KEYS[3]
local key, own, step = ARGV[1], ARGV[2], ARGV[3]
local stored = redis.call('HGET', answers, key)
local token, request = string.match(stored or '', '^c|([^|]*)|([^|]*)|%d+$')
if token ~= own then
  return 0
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if step == 'release' then
  redis.call('HDEL', answers, key)
  redis.call('ZREM', order, key)
elseif step == 'renew' then
  redis.call('HSET', answers, key, table.concat({'c', own, request, now + tonumber(ARGV[4])}, '|'))
else
  local value = table.concat({'a', request, ARGV[4]}, '|')
  redis.call('HSET', answers, key, value)
  redis.call('HINCRBY', answers, '#bytes', #value)
  redis.call('ZADD', order, now + tonumber(ARGV[5]), key)
  if ARGV[6] == '1' then
    redis.call('ZADD', spare, now + tonumber(ARGV[5]), key)
  end
  for i = 1, 3 do
    redis.call('PEXPIRE', KEYS[i], ARGV[5])
  end
end
return 1
