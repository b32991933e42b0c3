-- Ends or renews a claim that is still ours.
-- KEYS[1]  hash of claims and answers, as in idempotency-claim.lua
-- KEYS[2]  sorted set of the keys
-- KEYS[3]  sorted set of those that are spare
-- KEYS[4]  hash of the credentials that claimed them
-- ARGV[1]  by name (namedArgument in src/redis/script.ts): key; token of the claim; step: `answer` keeps ARGV[2] for kept_ms, is_spare or not; `release` forgets
--          the key; `renew` lets the claim hold for claim_ms more
-- ARGV[2]  the answer, or ''
-- Reply: 1, or 0 when the claim is no longer ours.
-- @include "../../redis/scripts/includes/json.lua"

-- @include "includes/answer-owners.lua"

local answers, order, spare = KEYS[1], KEYS[2], KEYS[3]
local settled = decoded(ARGV[1])
local key, own, step = settled.key, settled.token, settled.step
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
  answer_owners.forget(key)
elseif step == 'renew' then
  redis.call('HSET', answers, key, table.concat({'c', own, request, string.format('%.0f', now + settled.claim_ms)}, '|'))
else
  local value = table.concat({'a', request, ARGV[2]}, '|')
  redis.call('HSET', answers, key, value)
  redis.call('HINCRBY', answers, '#bytes', #value)
  answer_owners.grow(key, #value)
  redis.call('ZADD', order, string.format('%.0f', now + settled.kept_ms), key)
  if settled.is_spare then
    redis.call('ZADD', spare, string.format('%.0f', now + settled.kept_ms), key)
  end
  for i = 1, 4 do
    redis.call('PEXPIRE', KEYS[i], string.format('%.0f', settled.kept_ms))
  end
end
return 1
