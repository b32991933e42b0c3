-- Releases a lock that is still ours, and leaves for the next holders what we wrote.
-- KEYS[1]  the lock
-- KEYS[2]  notes: hash of topic to text
-- ARGV[1]  our token
-- ARGV[2]  how long the notes are kept, in milliseconds
-- ARGV[3…] topic, text, topic, text, …
-- Returns 1, or 0 when the lock has run out meanwhile.
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
if #ARGV > 2 then
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
return 1
