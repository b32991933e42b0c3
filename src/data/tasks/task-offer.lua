-- Queues a task for the workers of its organization's pool, unless there are too many.
--
-- KEYS[1] `q`, [2] `bell`, [3] `t:<task>`, [4] `o:<org>`, [5] `pools`; see `task-kind.ts`.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): id; task (JSON); timeout_ms to its deadline; max_waiting there; max_of_organization: most open
-- ones; org.
-- Reply: `queued` (also when it was before), `full` (no place is left for this organization) or `busy` (too many of this organization).
-- @include "includes/bounded-bell.lua"
-- @include "../../redis/scripts/includes/json.lua"
local call = redis.call
local offer = decoded(ARGV[1])
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if call('EXISTS', KEYS[3]) == 1 then
  return 'queued'
end
call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
local own = call('ZCARD', KEYS[4])
if own >= offer.max_of_organization then
  return 'busy'
end
local mark = call('HGET', KEYS[5], offer.org) or ''
local queue, bell = KEYS[1] .. mark, KEYS[2] .. mark
local free = offer.max_waiting - call('LLEN', queue)
-- Of the last quarter an organization gets a place only while it has fewer open than are free, as in `OpenShares` (open-shares.ts).
if free <= 0 or (free <= offer.max_waiting / 4 and own >= free) then
  return 'full'
end
call('SET', KEYS[3], offer.task, 'PX', offer.timeout_ms)
call('ZADD', KEYS[4], now + offer.timeout_ms, offer.id)
if call('PTTL', KEYS[4]) < offer.timeout_ms then
  call('PEXPIRE', KEYS[4], offer.timeout_ms)
end
call('RPUSH', queue, offer.id)
ring(bell)
return 'queued'
