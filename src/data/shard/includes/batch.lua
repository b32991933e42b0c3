-- @include "shard.lua"
-- @include "hints.lua"
-- @created-on-first-use

-- Targets whose messages go out in batches (warehouses). The limits that make a batch complete are in
-- the target's hash (../hash-fields.ts).
--
-- Messages gather in the lane of the fresh ones. A batch takes them out of there, and from then on is treated as one message:
-- `m:<batch>` with the event `*`, standing in the lane of retries, in `held` or `due`; F.message.moves is the largest of its
-- members', F.message.left the ones of all of them. `b:<batch>` has what it is made of: its layout, a line feed, and per member `<message> <event>;`. It is not changed, so
-- that a repeat writes the same objects again, but for what is too large to be written at once: its newest members leave (batch-cut.lua)
-- before the rest is written. A member has `y` before the semicolon when the output of a transform is kept for it. Members that are not
-- written are in the hash `bu:<batch>`, with the letter and the reason of finish_unsent, or `q` and that of a dead letter. `bs:<target>` is the
-- set of the batches of a target.
-- A target that has no complete batch waits under the limiter `~b<target>`.

-- Length, and time (ms) at which the oldest message was queued, of the lane of fresh messages; nil: it is empty.
local function batch_head(n)
  local length = redis.pcall('XLEN', P .. 'w:' .. n)
  if failed(length) or length == 0 then
    return 0, nil
  end
  local head = call('XRANGE', P .. 'w:' .. n, '-', '+', 'COUNT', 1)[1]
  local m = call('HMGET', P .. 'm:' .. head[2][2], F.message.move_stamp, F.message.index_stamp, F.message.due_ms, F.message.attempts)
  local queued = tonumber(string.match(m[1] or m[2] or '0', '^(%d+)'))
  -- A scheduled one is queued when its time comes.
  return length, math.max(queued, not m[4] and tonumber(m[3] or '0') or 0)
end

-- Whether so many bytes of events are waiting; what was counted before is not counted again.
local function batch_has_bytes(n, limit)
  local key = P .. 't:' .. n
  local counted = call('HMGET', key, F.target.batch_counted_entry, F.target.batch_counted_bytes)
  local last, bytes = counted[1], tonumber(counted[2] or '0')
  for _, entry in ipairs(call('XRANGE', P .. 'w:' .. n, last and '(' .. last or '-', '+', 'COUNT', 1000)) do
    if bytes >= limit then
      break
    end
    bytes = bytes + call('STRLEN', P .. 'e:' .. (call('HGET', P .. 'm:' .. entry[2][2], F.message.event) or ''))
    last = entry[1]
  end
  if last then
    call('HSET', key, F.target.batch_counted_entry, last, F.target.batch_counted_bytes, bytes)
  end
  return bytes >= limit
end

-- Whether a batch is complete; and else when (ms) the oldest message is old enough, nil when there is none.
local function batch_ready(n)
  local length, since = batch_head(n)
  if not since then
    return false, nil
  end
  local b = call('HMGET', P .. 't:' .. n, F.target.batch_records, F.target.batch_bytes, F.target.batch_age_ms)
  local due = since + tonumber(b[3])
  return length >= tonumber(b[1]) or now >= due or batch_has_bytes(n, tonumber(b[2])), due
end

-- Lets a target go on that gathers a batch, once there is something to do for it: a complete batch, or one that is not read.
local function batch_release(n, limiter)
  local retries = P .. 'w:' .. n .. 'r'
  local pending = redis.pcall('XPENDING', retries, 'g')
  local is_ready = not failed(pending) and call('XLEN', retries) > pending[1] or batch_ready(n)
  if is_ready then
    call('ZREM', P .. 'wait:' .. limiter, n)
    call('ZREM', P .. 'waiting', limiter)
    call('HDEL', P .. 't:' .. n, F.target.blocked_by)
  end
  return is_ready
end

-- Ends a batch; its members follow in steps (end-batches.lua): `d` delivered, `q` dead letters (with reason), `f` moved to a failover
-- (why, candidate; failover.lua).
local function batch_end(id, how, why, candidate)
  hints.batches = 1
  call('HSET', P .. 'm:' .. id, F.message.status, 'e', F.message.batch_end, how, F.message.batch_end_reason, why or '', F.message.batch_moves_to,
    candidate or '')
  call('RPUSH', P .. 'ended', id)
end
