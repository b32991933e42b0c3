#!lua flags=allow-oom
-- Removes a worker from the list: by itself when it ends, by others after its leases were requeued.
--
-- KEYS[1] `alive`, [2] `slots`, [3] `versions`, see heartbeat.lua.
-- ARGV[1] worker, [2] `end`: it ends and has no leases; `held`: it ends and may have leases, which others requeue at once;
-- `dead`: all its leases were requeued; ignored if it has sent a heartbeat meanwhile.
-- Reply: 1, or 0 when nothing was changed.
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if ARGV[2] == 'held' then
  call('ZADD', KEYS[1], 0, ARGV[1])
  call('HDEL', KEYS[2], ARGV[1])
  return 1
end
local life = call('ZSCORE', KEYS[1], ARGV[1])
if ARGV[2] == 'dead' and (not life or tonumber(life) > now) then
  return 0
end
call('ZREM', KEYS[1], ARGV[1])
call('HDEL', KEYS[2], ARGV[1])
call('HDEL', KEYS[3], ARGV[1])
return 1
