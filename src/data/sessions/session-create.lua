#!lua flags=allow-oom
-- Stores a session. Where the organization has too many, those that have ended are forgotten, and else, of the credential that has the most of them,
-- the one that was seen longest ago.
-- KEYS[1]  sorted set: id of a session → when it was last seen, in milliseconds since the epoch
-- KEYS[2]  hash of the new session
-- ARGV[1] by name (namedArgument in src/redis/script.ts): its id; now_ms: milliseconds since the epoch; idle_ms: after which it ends when it is not seen again;
--   max_sessions of the organization; max_age_ms: how long the longest session lasts; replaced: id of the session in whose place it comes, which ends, nil
--   for none; fields: names and values of the hash.
-- @include "../../redis/scripts/includes/json.lua"

local session = decoded(ARGV[1])
local sessions, max = KEYS[1], session.max_sessions
local function hash_of(id)
  return sessions .. ':' .. id
end
-- Redis may write a large number with an exponent, which PEXPIRE refuses.
local function integer(number)
  return string.format('%.0f', number)
end

if session.replaced then
  redis.call('UNLINK', hash_of(session.replaced))
  redis.call('ZREM', sessions, session.replaced)
end
if redis.call('ZCARD', sessions) >= max then
  -- Sessions of each credential: how many it has, and which of them was seen longest ago.
  local counts, oldest, most = {}, {}, nil
  for _, id in ipairs(redis.call('ZRANGE', sessions, 0, -1)) do
    local credential = redis.call('HGET', hash_of(id), 'credentialId')
    if credential then
      counts[credential] = (counts[credential] or 0) + 1
      oldest[credential] = oldest[credential] or id
      if most == nil or counts[credential] > counts[most] then
        most = credential
      end
    else
      redis.call('ZREM', sessions, id)
    end
  end
  if redis.call('ZCARD', sessions) >= max then
    redis.call('UNLINK', hash_of(oldest[most]))
    redis.call('ZREM', sessions, oldest[most])
  end
end
redis.call('HSET', KEYS[2], unpack(session.fields))
redis.call('PEXPIRE', KEYS[2], integer(session.idle_ms))
redis.call('ZADD', sessions, integer(session.now_ms), session.id)
redis.call('PEXPIRE', sessions, integer(session.max_age_ms))
return 0
