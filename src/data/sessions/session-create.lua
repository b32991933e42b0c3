-- Stores a session, and forgets those of the organization that have ended and, where it has too many, those that were seen longest ago.
-- KEYS[1]  sorted set: id of a session → when it was last seen, in milliseconds since the epoch
-- KEYS[2]  hash of the new session
-- ARGV[1]  its id
-- ARGV[2]  now, in milliseconds since the epoch
-- ARGV[3]  after how many milliseconds it ends when it is not seen again
-- ARGV[4]  how many sessions the organization may have
-- ARGV[5]  how long the longest session lasts, in milliseconds
-- ARGV[6]…  fields and values of the hash
local sessions, max = KEYS[1], tonumber(ARGV[4])
local function hash_of(id)
  return sessions .. ':' .. id
end

if redis.call('ZCARD', sessions) >= max then
  for _, id in ipairs(redis.call('ZRANGE', sessions, 0, -1)) do
    if redis.call('EXISTS', hash_of(id)) == 0 then
      redis.call('ZREM', sessions, id)
    end
  end
end
while redis.call('ZCARD', sessions) >= max do
  local oldest = redis.call('ZRANGE', sessions, 0, 0)[1]
  redis.call('UNLINK', hash_of(oldest))
  redis.call('ZREM', sessions, oldest)
end
redis.call('HSET', KEYS[2], unpack(ARGV, 6))
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('ZADD', sessions, ARGV[2], ARGV[1])
redis.call('PEXPIRE', sessions, ARGV[5])
return 0
