-- @include "failover.lua"
-- @include "queue-capacity.lua"
-- @include "retries.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "work.lua"
-- @include "expiry.lua"
-- @include "bury.lua"

-- Queues a message that has come from another shard, unless its target cannot take it: then it goes on to the next one, or back. One that overflowed
-- and comes back to a queue that is full is a dead letter, and so is one that expired on its way.
local function receive(id, n, org, why)
  local t = call('HMGET', P .. 't:' .. n, F.target.destination, F.target.circuit_state, F.target.moves_on, F.target.failover_targets)
  local m = failover.moves_of(id)
  if expiry.is_over(m.expires) then
    bury(id, org, expiry.reason(org))
    return
  end
  if m.expires then
    expiry.watch(id, m.expires)
  end
  if m.due then
    retries.schedule(n, id, m.due)
    return
  end
  local room = queue_capacity(t[1])
  local is_full = room and room <= 0
  if not m.is_away then
    if is_full and why == 'queue_limit_exceeded' then
      local place = failover.candidate(m, t[4], false)
      if place then
        failover.move(m, n, place, why)
      else
        bury(id, org, why)
      end
      return
    end
  elseif t[3] or is_full or t[2] == 'o' then
    -- Nothing is left to do at the first destination: an open circuit is better than that.
    local stays = failover.last_reasons[why] and not t[3] and not is_full
    local place = failover.candidate(m, t[4], false) or (not stays and failover.way_back(m)) or nil
    if place then
      failover.move(m, n, place, why)
      return
    end
  end
  enqueue(n, id, m.expires)
  use_room(t[1])
  activate(n)
end
