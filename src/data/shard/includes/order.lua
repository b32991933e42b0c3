-- @include "shard.lua"
-- @created-on-first-use

-- Targets whose messages go out in order have F.target.in_order; the set `ordered` has their numbers. At most one message is under way at a
-- time. The lane of retries comes first, and no fresh message goes out while a message waits in `due` or is in the lane of retries. So
-- what comes back without an attempt (put_back, outcome `b`) is in the lane of retries, too, by its acceptance (../../queue/includes/requeue-in-order.lua).
-- While its next message waits for its retry the target waits under the limiter `~o<target>`. A script that changes what it waits for calls
-- activate. Scheduled messages hold up nothing. Workers of the release before do not call it: the wait ends by itself after a time, and begins anew.

-- How many retries of target n wait in `due`: without first attempts that were scheduled (../../queue/includes/retries.lua).
local function waiting_retries(n)
  local waiting = call('HGET', P .. 'retries', n)
  return waiting and tonumber(waiting) - tonumber(call('HGET', P .. 'scheduled', n) or '0') or 0
end

-- Lets a target go on that waits for a retry, once that is in its lane or is gone.
local function order_release(n, limiter)
  if call('HEXISTS', P .. 't:' .. n, F.target.has_retry_lane) == 0 and waiting_retries(n) > 0 then
    return false
  end
  call('ZREM', P .. 'wait:' .. limiter, n)
  call('ZREM', P .. 'waiting', limiter)
  call('HDEL', P .. 't:' .. n, F.target.blocked_by)
  return true
end
