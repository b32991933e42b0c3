-- @include "account.lua"
-- @include "cancelled.lua"
-- @include "requeue-in-order.lua"
-- @include "../../shard/includes/pools.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "status-counts.lua"
-- @include "../../shard/includes/target.lua"
-- @include "work.lua"
-- @include "expiry.lua"
-- @include "bury.lua"

-- What stands for a message that a worker holds, beside its entry in the lane: `held` and `held:<worker>`, a lease of the
-- limiter, a place among the slow ones (slow.lua), a probe of the circuit (`probe:<target>`). All of it is named by the handle.
-- Whoever waits for the lease or the place takes it.
local function release_places(handle, n, org, destination)
  call('ZREM', P .. 'probe:' .. n, handle)
  local mark = mark_of(org)
  if call('ZREM', P .. 'slow' .. mark, handle) == 1 then
    call('ZREM', P .. 'slow:' .. account_of(org), handle)
    wake('~slow:' .. account_of(org), 1)
    wake('~slow' .. mark, 1)
  end
  if call('ZREM', P .. 'lease:' .. destination, handle) == 1 then
    wake(destination, 1)
  end
end

local function forget_held(handle, worker)
  call('ZREM', P .. 'held', handle .. '/' .. worker)
  call('HDEL', P .. 'held:' .. worker, handle)
end

-- Puts what a worker holds back into its lane as a new entry; of a target whose messages go out in order, into the lane of retries, which comes first; one that
-- was cancelled ends. Nothing happens when somebody has settled it meanwhile. It is held until it is back, or has ended.
-- Returns whether it was requeued.
local function put_back(handle, worker, id)
  local lane, entry = string.match(handle, '^(%d+r?)/(.+)$')
  local n = number_of_lane(lane)
  local w = P .. 'w:' .. lane
  local pending = redis.pcall('XPENDING', w, 'g', entry, entry, 1)
  if failed(pending) or #pending == 0 then
    forget_held(handle, worker)
    return false
  end
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.destination, F.target.in_order)
  local m = call('HMGET', P .. 'm:' .. id, F.message.status, F.message.attempts, F.message.expires_ms, F.message.cancellation)
  local attempts = tonumber(m[2] or '0')
  if expiry.has_ended(m[1]) then
    m[1] = nil
  elseif m[4] and t[1] then
    bury(id, t[1], cancelled.reason)
    m[1] = nil
  elseif m[1] then
    if t[3] then
      enqueue_back_in_order(n, { id })
    else
      enqueue_in(lane, id, m[3])
    end
  end
  forget_held(handle, worker)
  call('XACK', w, 'g', entry)
  call('XDEL', w, entry)
  if t[1] then
    release_places(handle, n, t[1], t[2])
  end
  if m[1] then
    call('HSET', P .. 'm:' .. id, F.message.status, waiting_letter(attempts))
    if t[1] then
      count_status(t[1], m[1], waiting_letter(attempts))
    end
  end
  settle_target(n)
  activate(n)
  return true
end
