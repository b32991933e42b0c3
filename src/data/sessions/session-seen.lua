#!lua flags=allow-oom
-- Notes that a session was seen, unless it has ended.
-- KEYS[1]  sorted set: id of a session → when it was last seen, in milliseconds since the epoch
-- KEYS[2]  hash of the session
-- ARGV[1]  its id
-- ARGV[2]  now, in milliseconds since the epoch
-- ARGV[3]  after how many milliseconds it ends when it is not seen again
-- Returns 1, or 0 when it has ended.
if redis.call('EXISTS', KEYS[2]) == 0 then
  return 0
end
redis.call('HSET', KEYS[2], 'seen', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
return 1
