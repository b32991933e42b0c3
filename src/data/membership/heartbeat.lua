#!lua flags=allow-oom
-- Records a heartbeat of a worker, and returns the workers whose heartbeats have ended.
--
-- KEYS[1] `alive`: sorted set of workers by the end of their life (ms); [2] `slots`: hash of what each can do at a time; [3] `shards`:
-- how many shards there are; [4] `pulse`: hash, last: time of the last heartbeat of any worker, mute: no worker is declared dead before this time;
-- [5] `versions`: hash of the release that each runs. Workers of earlier releases have no field there, and do not remove those of others.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): id of the worker, its slots and version; lifetime_ms; shards: how many it has.
-- Reply: {slots of all living workers of its pool (ids end with its mark, `@<pool>` or nothing), how many shards there are, dead workers}.
--
-- After an outage of Redis the first worker to beat would find all others dead: so each gets one full lifetime before it is declared dead.
-- @include "../../redis/scripts/includes/json.lua"

local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local heartbeat = decoded(ARGV[1])
local worker, lifetime = heartbeat.id, heartbeat.lifetime_ms

local pulse = call('HMGET', KEYS[4], 'last', 'mute')
local mute = tonumber(pulse[2] or '0')
if pulse[1] and now - tonumber(pulse[1]) > lifetime / 2 then
  mute = now + lifetime
  call('HSET', KEYS[4], 'mute', string.format('%.0f', mute))
end
call('HSET', KEYS[4], 'last', string.format('%.0f', now))

call('ZADD', KEYS[1], now + lifetime, worker)
call('HSET', KEYS[2], worker, heartbeat.slots)
call('HSET', KEYS[5], worker, heartbeat.version)
if call('HLEN', KEYS[5]) > call('ZCARD', KEYS[1]) then
  for _, id in ipairs(call('HKEYS', KEYS[5])) do
    if not call('ZSCORE', KEYS[1], id) then
      call('HDEL', KEYS[5], id)
    end
  end
end
local shards = math.max(tonumber(call('GET', KEYS[3]) or '0'), heartbeat.shards)
call('SET', KEYS[3], shards)

local function pool_of(id)
  return string.match(id, '@.*$') or ''
end

local total = 0
local all = call('HGETALL', KEYS[2])
for k = 1, #all, 2 do
  if pool_of(all[k]) == pool_of(worker) then
    total = total + tonumber(all[k + 1])
  end
end
local dead = now >= mute and call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 16) or call('ZRANGEBYSCORE', KEYS[1], 0, 0, 'LIMIT', 0, 16)
return { total, shards, dead }
