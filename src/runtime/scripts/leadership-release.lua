-- Gives the leader lock up when the candidate holds it.
-- KEYS[1] the lock: a string, the identity of its holder
-- ARGV[1] identity of the candidate
-- Returns 1 when it was held by the candidate, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
