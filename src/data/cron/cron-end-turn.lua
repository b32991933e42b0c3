#!lua flags=allow-oom
-- Ends the turn of a scheduler that stops, so that another need not wait for it.
-- KEYS[1] `turn`; ARGV[1] scheduler.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
