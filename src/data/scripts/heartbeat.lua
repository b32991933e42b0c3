#!lua flags=allow-oom
-- Says that a worker lives, and tells it what it may have missed.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] worker, [2] its slots (0: it leaves), [3] lifetime in ms, [4] a marker to write when the shard has none, [5] memory
-- limit in bytes where Redis has none, or ''.
-- Reply: {marker, entries held by this worker, servable work 0/1, work to reclaim 0/1, paused targets, ms until something is
-- due or -1, thousandths of the memory limit in use or -1}.
-- Above 80 % `full` in `ctl` makes accept refuse events; it goes below 75 %.
-- @include "includes/shard.lua"
-- @include "includes/memory.lua"

local full_permille, relieved_permille = 800, 750

local worker, slots = ARGV[1], tonumber(ARGV[2])
if slots > 0 then
  call('ZADD', P .. 'workers', now + tonumber(ARGV[3]), worker)
  call('HSET', P .. 'slots', worker, slots)
elseif call('EXISTS', P .. 'held:' .. worker) == 0 then
  call('ZREM', P .. 'workers', worker)
  call('HDEL', P .. 'slots', worker)
else
  -- What it still holds is taken from it at once.
  call('ZADD', P .. 'workers', 0, worker)
end
local total = 0
for _, value in ipairs(call('HVALS', P .. 'slots')) do
  total = total + tonumber(value)
end
call('HSET', ctl, 'slots', total)
call('HSETNX', ctl, 'marker', ARGV[4])

local permille = memory_permille(ARGV[5])
if permille and permille >= full_permille then
  call('HSET', ctl, 'full', '1')
elseif not permille or permille < relieved_permille then
  call('HDEL', ctl, 'full')
end

local dead = call('ZCOUNT', P .. 'workers', '-inf', '(' .. now)
local overdue = call('ZCOUNT', P .. 'held', '-inf', now)
return {
  call('HGET', ctl, 'marker'),
  call('HLEN', P .. 'held:' .. worker),
  call('EXISTS', P .. 'ready'),
  (dead > 0 or overdue > 0) and 1 or 0,
  call('SCARD', P .. 'paused'),
  next_due_ms(),
  permille or -1,
}
