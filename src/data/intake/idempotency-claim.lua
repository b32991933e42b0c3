-- Claims an idempotency key, or says what is known of it. Makes room: forgets what is over its time, and what is spare beyond its bound.
-- KEYS[1]  hash: key → `c|token|request|end in ms` while claimed, `a|request|answer` once answered; `#bytes` → bytes of the answers
-- KEYS[2]  sorted set: key → when it is forgotten, in milliseconds since the epoch
-- KEYS[3]  the same of those that are spare: whose answer can be found out again without it
-- KEYS[4]  hash: key → `bytes credential` of the credential that claimed it; `#credential` → bytes of all its keys
-- ARGV[1]  by name (namedArgument in src/redis/script.ts): key; token of the claim; request: its digest; claim_ms: how long the claim holds; kept_ms: how long a key
--          is kept; spare_bytes of an organization beyond which those that are spare are forgotten early; max_bytes beyond which no new key is taken;
--          credential that claims it; kept_part: the last part of max_bytes, as a fraction. A credential gets more of that part only while it
--          holds less than is free
-- Reply: {'claimed', 1 when another claim has run out, else 0} | {'answered', answer} | {'under-way', ms until the claim ends} | {'other'}: used for another request
-- | {'full', ms until the oldest key is forgotten}
-- @include "../../redis/scripts/includes/json.lua"

-- @include "includes/answer-owners.lua"

local answers, order, spare = KEYS[1], KEYS[2], KEYS[3]
local claim = decoded(ARGV[1])
local key, own, request = claim.key, claim.token, claim.request
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local stored = redis.call('HGET', answers, key)
local has_run_out = 0
if stored then
  local answered, answer = string.match(stored, '^a|([^|]*)|(.*)$')
  if answered and tonumber(redis.call('ZSCORE', order, key) or 0) > now then
    if answered ~= request then
      return {'other'}
    end
    return {'answered', answer}
  end
  local token, claimed, claim_ends = string.match(stored, '^c|([^|]*)|([^|]*)|(%d+)$')
  if token and token ~= own and tonumber(claim_ends) > now then
    if claimed ~= request then
      return {'other'}
    end
    return {'under-way', tonumber(claim_ends) - now}
  end
  if token and token ~= own then
    has_run_out = 1
  end
end

local function forget(member)
  local value = redis.call('HGET', answers, member)
  if value and string.sub(value, 1, 1) == 'a' then
    redis.call('HINCRBY', answers, '#bytes', -#value)
  end
  redis.call('HDEL', answers, member)
  redis.call('ZREM', order, member)
  redis.call('ZREM', spare, member)
  answer_owners.forget(member)
end

local function bytes()
  return tonumber(redis.call('HGET', answers, '#bytes') or 0) + answer_owners.key_bytes * redis.call('ZCARD', order)
end

-- A claim brings one key, so a few steps keep the bounds.
for _ = 1, 8 do
  local oldest = redis.call('ZRANGE', order, 0, 0, 'WITHSCORES')
  if not oldest[1] or tonumber(oldest[2]) > now then
    break
  end
  forget(oldest[1])
end
for _ = 1, 8 do
  local oldest = redis.call('ZRANGE', spare, 0, 0)
  if not oldest[1] or bytes() < claim.spare_bytes then
    break
  end
  forget(oldest[1])
end
if redis.call('ZCARD', order) == 0 then
  -- A process of the release before forgets keys without their owners.
  redis.call('DEL', KEYS[4])
end
local free = claim.max_bytes - bytes()
if not stored and (free <= 0 or free <= claim.max_bytes * claim.kept_part and answer_owners.bytes_of(claim.credential) >= free) then
  local oldest = redis.call('ZRANGE', order, 0, 0, 'WITHSCORES')
  if oldest[1] and tonumber(oldest[2]) > now then
    return {'full', tonumber(oldest[2]) - now}
  end
end
forget(key)
redis.call('HSET', answers, key, table.concat({'c', own, request, string.format('%.0f', now + claim.claim_ms)}, '|'))
redis.call('ZADD', order, string.format('%.0f', now + claim.kept_ms), key)
answer_owners.own(key, claim.credential, 0)
for i = 1, 4 do
  redis.call('PEXPIRE', KEYS[i], string.format('%.0f', claim.kept_ms))
end
return {'claimed', has_run_out}
