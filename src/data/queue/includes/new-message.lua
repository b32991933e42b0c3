-- @include "../../shard/includes/count.lua"
-- @include "index.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "status-counts.lua"
-- @include "work.lua"
-- @include "unfinished.lua"
-- @include "failover.lua"
-- @include "overflow.lua"
-- @include "queue-capacity.lua"
-- @include "retries.lua"
-- @include "expiry.lua"
-- @include "bury.lua"

-- Makes the message of an event for one target.

-- Returns whether it was queued there; else the queue of the destination is full: it has moved to a failover destination that is free, then also its
-- entry in the outbox where that is in another shard, or is a dead letter. `target.is_paced`: it is in the lane of retries;
-- `elsewhere`: it moves there at once, and then never again. `target.max` is the largest
-- number of attempts, with `;b<ms>` behind it where the first attempt is made at that time at the earliest, and `;x<ms>` where the message expires; of a
-- webhook endpoint its subscription follows, and the transform of that when it has one.
local function new_message(event, org, n, target)
  local stamp = new_stamp()
  local max, times, subscription, transform = target.max, '', nil, nil
  if not tonumber(max) then
    max, times, subscription, transform = string.match(max, '^(%d+)(%S*) ?(%S*) ?(%S*)$')
    subscription = subscription ~= '' and subscription or nil
  end
  local due, expires = nil, nil
  if times ~= '' then
    due, expires = tonumber(string.match(times, ';b(%d+)') or ''), string.match(times, ';x(%d+)')
    if due and due <= now then
      due = nil
    end
  end
  local further = {}
  if subscription then
    further[1], further[2] = F.message.subscription, subscription
    if transform ~= '' then
      further[3], further[4] = F.message.transform, transform
    end
  end
  if due then
    further[#further + 1] = F.message.due_ms
    further[#further + 1] = integer(due)
  end
  if expires then
    further[#further + 1] = F.message.expires_ms
    further[#further + 1] = expires
  end
  call('HSET', P .. 'm:' .. target.id, F.message.event, event, F.message.target, n, F.message.status, 'p', F.message.max_attempts, max,
    F.message.index_stamp, stamp, unpack(further))
  count_status(org, nil, 'p')
  hold_event(event, org, 1)
  counters.made(org, n)
  index_add(index_key(org), stamp, target.id)
  index_add(index_key(target.route), stamp, target.id)
  index_add(index_key(target.destination), stamp, target.id)
  if expires and expiry.is_over(expires) then
    -- It came late, from the outbox.
    bury(target.id, org, expiry.reason(org))
    return false
  end
  if target.elsewhere then
    local m = failover.moves_of(target.id)
    m.count = failover.max_moves - 1
    -- Workers of the release before support no separate reason for this.
    return false, failover.move(m, n, target.elsewhere, 'destination_unavailable')
  end
  if due then
    retries.schedule(n, target.id, due)
    if expires then
      expiry.watch(target.id, expires)
    end
    return false
  end
  if is_queue_full(target.destination) then
    local is_over, entry = overflow(target.id, n, org, target.destination)
    if is_over then
      return false, entry
    end
  end
  -- The lane of retries of a target that forms batches has batches alone.
  if target.is_paced and not call('HGET', P .. 't:' .. n, F.target.batch_layout) then
    enqueue_retry(n, target.id, expires)
  else
    enqueue(n, target.id, expires)
  end
  use_room(target.destination)
  return true
end
