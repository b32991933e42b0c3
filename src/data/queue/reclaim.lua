#!lua flags=allow-oom
-- Requeues leases of dead workers and leases past their deadline. At most 100 entries per
-- call.
--
-- KEYS: see ../shard/includes/shard.lua. ARGV: the dead workers.
-- Reply: {how many were requeued, 1 when there is more}. An entry at which an error occurs stays held; the others are requeued.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/hold.lua"
-- @include "includes/ring-pools.lua"
-- @include "includes/complete-end.lua"
-- @include "../shard/includes/apart.lua"

local budget = 100
local back = 0
local function put_back_held(handle, worker, id)
  if put_back(handle, worker, id) then
    back = back + 1
  end
end
local function complete(_, _, id)
  complete_end(id)
end
local function reclaim(handle, worker, id)
  budget = budget - 1
  apart.run(put_back_held, complete, handle, worker, id)
end

for _, worker in ipairs(ARGV) do
  local held = call('HGETALL', P .. 'held:' .. worker)
  for k = 1, #held, 2 do
    if budget > 0 then
      reclaim(held[k], worker, held[k + 1])
    end
  end
end
if budget > 0 then
  for _, member in ipairs(call('ZRANGEBYSCORE', P .. 'held', '-inf', now, 'LIMIT', 0, budget)) do
    local handle, worker = string.match(member, '^(%d+r?/[^/]+)/(.+)$')
    local id = call('HGET', P .. 'held:' .. worker, handle)
    if id then
      reclaim(handle, worker, id)
    else
      call('ZREM', P .. 'held', member)
    end
  end
end
counters.write()
write_status_counts()
write_unfinished()
if back > 0 then
  ring_woken()
  ring_ready()
end
return apart.reply({ back, budget <= 0 and 1 or 0 })
