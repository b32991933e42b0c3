-- @include "failover.lua"
-- @include "queue-capacity.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "bury.lua"
-- @created-on-first-use

local queue_is_full = 'queue_limit_exceeded'

-- Sends a message of target n that is to be queued there on, if the queue of its destination is full: to a failover destination that is free, else to the dead letters.
-- While the target is not configured its failover destinations are unknown, although another target of the destination may have brought the limit: then it is
-- queued, and configure.lua moves what exceeds the queue.
-- Returns whether it did, then also the entry in the outbox of a message that moves to another shard.
local function overflow(id, n, org, destination)
  if not is_queue_full(destination) then
    return false
  end
  local t = call('HMGET', P .. 't:' .. n, F.target.revision, F.target.failover_targets)
  if not t[1] then
    return false
  end
  local m = failover.moves_of(id)
  local candidate = failover.candidate(m, t[2], false)
  if candidate then
    return true, failover.move(m, n, candidate, queue_is_full)
  end
  bury(id, org, queue_is_full)
  return true
end
