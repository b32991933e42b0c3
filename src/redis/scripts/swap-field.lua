-- Replaces the value of a field of a hash, if it is still the one that was read.
-- KEYS[1]  the hash
-- ARGV[1]  the field
-- ARGV[2]  what was read
-- ARGV[3]  its new value
-- Returns 1, or 0 when the field has another value meanwhile, or is gone. Repeated after it was done, it returns 0.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
