#!lua flags=allow-oom
-- Stores a session. Where the organization has too many, those that have ended are forgotten, and else, of the credential that has the most of them,
-- the one that was seen longest ago.
-- KEYS[1]  sorted set: id of a session → when it was last seen, in milliseconds since the epoch
-- KEYS[2]  hash of the new session
-- ARGV[1]  its id
-- ARGV[2]  now, in milliseconds since the epoch
-- ARGV[3]  after how many milliseconds it ends when it is not seen again
-- ARGV[4]  how many sessions the organization may have
-- ARGV[5]  how long the longest session lasts, in milliseconds
-- ARGV[6]  id of the session in whose place it comes, which ends; empty: none
-- ARGV[7]…  fields and values of the hash
local sessions, max = KEYS[1], tonumber(ARGV[4])
local function hash_of(id)
  return sessions .. ':' .. id
end

if ARGV[6] ~= '' then
  redis.call('UNLINK', hash_of(ARGV[6]))
  redis.call('ZREM', sessions, ARGV[6])
end
if redis.call('ZCARD', sessions) >= max then
  -- Of each credential: how many sessions it has, and which of them was seen longest ago.
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
redis.call('HSET', KEYS[2], unpack(ARGV, 7))
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('ZADD', sessions, ARGV[2], ARGV[1])
redis.call('PEXPIRE', sessions, ARGV[5])
return 0
