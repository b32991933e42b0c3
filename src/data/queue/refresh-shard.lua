#!lua flags=allow-oom
-- Refreshes what a shard keeps of the whole installation: slots, the marker, and whether Redis is full. Returns the state of the shard to a worker.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): id of the worker; total_slots of all workers of its pool, which has the suffix pool; marker to
-- write when the shard has none; memory_limit in bytes where Redis has none; tally_ms: for how long a tally is left to grow (fold-tallies.lua).
-- Reply: {hints, marker, entries held by this worker, entries held past their deadline 0/1, paused targets, thousandths of the memory limit in use or -1,
-- tallies to fold 0/1, a sample of the backlogs is due 0/1 (sample-backlogs.lua)}. The hints look for entries that wait in the outbox for longer than their
-- maker needs to carry them.
-- Above 80 % `full` in `ctl` makes accept refuse events; it goes below 75 %.
-- @include "../shard/includes/shard.lua"
-- @include "includes/memory.lua"
-- @include "includes/outbox-entries.lua"
-- @include "../shard/includes/hints.lua"
-- @include "../../redis/scripts/includes/json.lua"

local full_permille, relieved_permille = 800, 750
local left_after_ms = 2000

local worker = decoded(ARGV[1])
call('HSET', ctl, F.control.slots .. worker.pool, worker.total_slots)
call('HSETNX', ctl, F.control.marker, worker.marker)
local permille = memory_permille(worker.memory_limit)
if permille and permille >= full_permille then
  call('HSET', ctl, F.control.full, '1')
elseif not permille or permille < relieved_permille then
  call('HDEL', ctl, F.control.full)
end

hints.ready, hints.due = call('EXISTS', P .. 'ready' .. worker.pool), next_due_ms()
hints.outbox = (oldest_wait_ms() or 0) > left_after_ms and 1 or 0
hints.batches = call('EXISTS', P .. 'ended')
hints.ends = (call('EXISTS', P .. 'ends') == 1 or call('ZCOUNT', P .. 'alerts', '-inf', now) > 0) and 1 or 0

return {
  hints.reply(),
  call('HGET', ctl, F.control.marker),
  call('HLEN', P .. 'held:' .. worker.id),
  call('ZCOUNT', P .. 'held', '-inf', now) > 0 and 1 or 0,
  call('SCARD', P .. 'paused'),
  permille or -1,
  call('ZCOUNT', P .. 'tallies', '-inf', now - worker.tally_ms) > 0 and 1 or 0,
  call('HGET', ctl, F.control.sampled_period) == integer(math.floor(now / 300000)) and 0 or 1,
}
