#!lua flags=allow-oom
-- The number of shards only grows.
--
-- KEYS[1] `shards`, see heartbeat.lua. ARGV[1] how many the caller has; 0 only reads. Reply: how many there are.
local shards, known = tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(ARGV[1])
if known <= shards then
  return shards
end
redis.call('SET', KEYS[1], known)
return known
