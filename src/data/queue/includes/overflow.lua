-- @include "failover.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "bury.lua"
-- @created-on-first-use

local queue_limit_exceeded = 'queue_limit_exceeded'

-- Sends a message of target n on that is to be queued there, where the queue of its destination is full (is_queue_full): to a failover destination that is free, else to
-- the dead letters.
-- While the target is not configured its failover destinations are unknown, although another target of the destination may have brought the limit: then it is
-- queued, and configure.lua moves what exceeds the queue.
-- Returns whether it did, then also the entry in the outbox of a message that moves to another shard.
local function overflow(id, n, org, destination)
  local t = call('HMGET', P .. 't:' .. n, F.target.revision, F.target.failover_targets)
  if not t[1] then
    return false
  end
  local m = failover.moves_of(id)
  local candidate = failover.candidate(m, t[2], false)
  if candidate then
    return true, failover.move(m, n, candidate, queue_limit_exceeded)
  end
  bury(id, org, queue_limit_exceeded)
  return true
end
