-- Lets a lock that is still ours hold for longer.
-- KEYS[1]  the lock
-- ARGV[1]  our token
-- ARGV[2]  how long it holds from now, in milliseconds
-- Returns 1, or 0 when the lock has run out meanwhile.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
