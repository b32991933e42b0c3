-- Takes the leader lock when it is free, or prolongs it when the candidate holds it.
-- KEYS[1] the lock: a string, the identity of its holder
-- ARGV[1] identity of the candidate
-- ARGV[2] how long the lock lasts, in milliseconds
-- Returns 1 when the candidate holds it now, 0 when another one does.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
