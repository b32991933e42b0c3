-- Queues a task for the workers of its organization's pool, unless there are too many.
--
-- KEYS[1] `q`, [2] `bell`, [3] `t:<task>`, [4] `o:<org>`, [5] `pools`; see `task-kind.ts`.
-- ARGV[1] task id, [2] the task, [3] time to its deadline in ms, [4] most waiting ones there, [5] most open ones of an organization,
-- [6] organization.
-- Reply: `queued` (also when it was before), `full` or `busy` (too many of this organization).
-- @include "includes/bounded-bell.lua"
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if call('EXISTS', KEYS[3]) == 1 then
  return 'queued'
end
call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
if call('ZCARD', KEYS[4]) >= tonumber(ARGV[5]) then
  return 'busy'
end
local mark = call('HGET', KEYS[5], ARGV[6]) or ''
local queue, bell = KEYS[1] .. mark, KEYS[2] .. mark
if call('LLEN', queue) >= tonumber(ARGV[4]) then
  return 'full'
end
call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
call('ZADD', KEYS[4], now + tonumber(ARGV[3]), ARGV[1])
if call('PTTL', KEYS[4]) < tonumber(ARGV[3]) then
  call('PEXPIRE', KEYS[4], ARGV[3])
end
call('RPUSH', queue, ARGV[1])
ring(bell)
return 'queued'
