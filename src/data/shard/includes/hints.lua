-- @include "shard.lua"

-- Hints of a script for the worker about its shard: `ShardHints` (queue/delivery-queue.ts), the first element of the reply. A script sets
-- the hints that it looks up, and includes set those that they cause. The others keep the values below.
local hints = {
  -- 1: the worker's pool can dequeue work; 2: some of that is of others than the dominant account and those that get nothing (dequeue.lua).
  ready = 0,
  -- Ms until promote.lua has something to move, 0: now; -1: nothing waits.
  due = -1,
  -- 1: entries of the outbox are to be carried to other shards.
  outbox = 0,
  -- 1: batches have ended whose members have not followed yet.
  batches = 0,
  -- 1: the log of the alerts has entries, or alerts are due.
  ends = 0,
  -- Whether this call has put something first of what waits for its time: a worker that sleeps until then would be late. Not in the reply.
  is_sooner = false,
}

function hints.reply()
  return { hints.ready, hints.due, hints.outbox, hints.batches, hints.ends }
end

-- Milliseconds until a retry or a waiting limiter is due; -1: nothing waits.
local function next_due_ms()
  local due = call('ZRANGE', P .. 'due', 0, 0, 'WITHSCORES')
  local waiting = call('ZRANGE', P .. 'waiting', 0, 0, 'WITHSCORES')
  local at = nil
  if due[2] then
    at = tonumber(due[2])
  end
  if waiting[2] and (at == nil or tonumber(waiting[2]) < at) then
    at = tonumber(waiting[2])
  end
  if at == nil then
    return -1
  end
  return math.max(0, math.ceil(at - now))
end
