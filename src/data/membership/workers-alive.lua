-- Whether a worker of a pool lives.
--
-- KEYS[1] `alive`, see heartbeat.lua.
-- ARGV[1] mark of the pool, with which the ids of its workers end (`pool-suffix.ts`).
-- Reply: 1, or 0.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')) do
  if (string.match(worker, '@.*$') or '') == ARGV[1] then
    return 1
  end
end
return 0
