#!lua flags=allow-oom
-- Lets the members of batches that have ended follow them, each with the attempts of its batch; at most ARGV[1] members per call.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] how many members at most, [2] the mark of the worker's pool.
-- Reply: {hints}.
-- @include "../shard/includes/shard.lua"
-- @include "includes/failover.lua"
-- @include "includes/ends.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/cancelled.lua"
-- @include "includes/finish.lua"
-- @include "includes/ring-pools.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/work.lua"
-- @include "../shard/includes/hints.lua"
-- @include "../feed/includes/feed.lua"
-- @include "includes/failures-index.lua"
-- @include "includes/expiry.lua"
-- @include "includes/finish-unsent.lua"

local budget = tonumber(ARGV[1])
local closed = 0

-- The attempts of the batch: all in their short form, the last one also in its long form, if it has any.
local function attempts_of(id, count)
  if count == 0 then
    return {}, false
  end
  local numbers = {}
  for k = 1, count do
    numbers[k] = k
  end
  return call('HMGET', P .. 'm:' .. id, unpack(numbers)), call('HGET', P .. 'a:' .. id, count)
end

-- What a member has of the first `count` attempts of its batch, besides its own before that.
local function attempts_fields(message, batch, count)
  local before = tonumber(call('HGET', P .. 'm:' .. message, F.message.attempts) or '0')
  local fields = { F.message.max_attempts, before + batch.max }
  if count > 0 then
    fields[3], fields[4] = F.message.attempts, before + count
    for k = 1, count do
      fields[#fields + 1] = before + k
      fields[#fields + 1] = batch.short[k] or ''
    end
    -- The last of the failed attempts has the reason. One that delivered has a long form only with a warning.
    if batch.long and count == batch.attempts then
      call('HSET', P .. 'a:' .. message, before + count, batch.long)
    end
  end
  return fields
end

-- What is noted of the batch's failed attempts (failures.lua) stays true of its first member.
local function keep_failures(batch, member)
  local noted = call('HGET', P .. 't:' .. batch.target, F.target.recent_failures)
  if not noted or not member then
    return
  end
  local before = tonumber(call('HGET', P .. 'm:' .. member, F.message.attempts) or '0')
  local kept = string.gsub(noted, batch.id .. '/(%d+)', function(attempt)
    return member .. '/' .. before + attempt
  end)
  call('HSET', P .. 't:' .. batch.target, F.target.recent_failures, kept)
end

-- When all members of a batch return, a member that came from another destination moves to its next one. So does every member when the target
-- serves none. A member without a next destination is requeued.
local function move_member(message, batch)
  local moves = failover.moves_of(message)
  local candidate = batch.candidate
  if candidate == failover.way_back_of_members then
    candidate = (moves.is_away or batch.moves == 'a') and failover.next_place(moves, batch.failover) or nil
  elseif not string.find(candidate, '/', 1, true) and not failover.is_there(candidate) then
    -- It was deleted since the batch ended, or takes no messages.
    candidate = failover.candidate(moves, batch.failover, failover.last_reasons[batch.why] and 'open')
  end
  if candidate then
    failover.move(moves, batch.target, candidate, batch.why)
    return
  end
  call('HSET', P .. 'm:' .. message, F.message.status, moves.attempts > 0 and 'r' or 'p')
  enqueue(batch.target, message, moves.expires)
  activate(batch.target)
end

-- Ends a member that has expired or was cancelled, with the attempts that were made before.
local function end_early(message, event, batch, reason, tried)
  local fields = attempts_fields(message, batch, tried)
  for _, value in ipairs({ finish(message, event, batch.org, batch.target, batch.destination, 'q', reason) }) do
    fields[#fields + 1] = value
  end
  call('HSET', P .. 'm:' .. message, unpack(fields))
end

local function end_member(message, batch)
  local key = P .. 'm:' .. message
  local m = call('HMGET', key, F.message.batch, F.message.attempts, F.message.max_attempts, F.message.event, F.message.expires_ms,
    F.message.cancellation)
  if m[1] ~= batch.id then
    return
  end
  call('HDEL', key, F.message.batch)
  feed.attempt(nil)
  local unsent = call('HGET', P .. 'bu:' .. batch.id, message)
  if unsent then
    local how, why = string.sub(unsent, 1, 1), string.sub(unsent, 2)
    local reason, tried = string.match(why, '^([%l_]+)/(%d+)$')
    if how == 'q' and reason then
      end_early(message, m[4], batch, reason, tonumber(tried))
    elseif how == 'q' then
      call('HSET', key, finish(message, m[4], batch.org, batch.target, batch.destination, how, why))
    else
      call('HSET', key, finish_unsent(message, m[4], batch.org, batch.target, how, why))
    end
    if m[5] then
      expiry.forget(message)
    end
    closed = closed + 1
    return
  end
  local before = tonumber(m[2] or '0')
  if batch.how == 'f' and not m[6] and expiry.is_over(m[5]) then
    end_early(message, m[4], batch, expiry.reason(batch.org), batch.attempts)
    expiry.forget(message)
    closed = closed + 1
    return
  end
  local fields = attempts_fields(message, batch, batch.attempts)
  if batch.attempts > 1 or batch.attempts == 1 and batch.how ~= 'd' then
    note_failure(batch.org, message, call('HGET', key, F.message.index_stamp))
  end
  local how, why = batch.how, batch.how == 'q' and batch.why or nil
  if m[6] and how ~= 'd' then
    how, why = 'q', cancelled.reason
  end
  if how == 'f' then
    call('HSET', key, unpack(fields))
    if batch.attempts > 0 then
      counters.ended(batch.org, batch.target, batch.destination, F.tally.moved)
    end
    move_member(message, batch)
    return
  end
  feed.attempt(before + batch.attempts, batch.short[batch.attempts], batch.long)
  local ending = { finish(message, m[4], batch.org, batch.target, batch.destination, how, why, nil, how == 'd' and F.tally.delivered_in_batch or nil) }
  if how == 'd' and batch.has_alerts then
    end_log.add_success(message, batch.org, batch.route, batch.destination)
  end
  for _, value in ipairs(ending) do
    fields[#fields + 1] = value
  end
  call('HSET', key, unpack(fields))
  if m[5] then
    expiry.forget(message)
  end
  closed = closed + 1
end

while budget > 0 do
  local id = call('LINDEX', P .. 'ended', 0)
  if not id then
    break
  end
  local key = P .. 'm:' .. id
  local b = call('HMGET', key, F.message.target, F.message.batch_end, F.message.batch_end_reason, F.message.batch_moves_to, F.message.attempts,
    F.message.max_attempts, F.message.batch_position)
  local text = b[1] and call('GET', P .. 'b:' .. id)
  local t = b[1] and call('HMGET', P .. 't:' .. b[1], F.target.organization, F.target.destination, F.target.route, F.target.has_alerts,
    F.target.moves_on, F.target.failover_targets) or {}
  local is_over = true
  if text and t[1] then
    local batch = {
      id = id, target = b[1], org = t[1], destination = t[2], route = t[3], has_alerts = t[4], how = b[2], why = b[3], candidate = b[4],
      moves = t[5], failover = t[6] or nil,
      attempts = tonumber(b[5] or '0'), max = tonumber(b[6]),
    }
    batch.short, batch.long = attempts_of(id, batch.attempts)
    local at = tonumber(b[7] or '0')
    if at == 0 then
      at = string.find(text, '\n', 1, true) + 1
      keep_failures(batch, string.match(text, '^%w+', at))
    end
    while budget > 0 and at <= #text do
      local last = string.find(text, ';', at, true)
      end_member(string.match(text, '^%S+', at), batch)
      at, budget = last + 1, budget - 1
    end
    is_over = at > #text
    if not is_over then
      call('HSET', key, F.message.batch_position, at)
    end
  end
  if is_over then
    call('LPOP', P .. 'ended')
    call('DEL', key, P .. 'a:' .. id, P .. 'b:' .. id, P .. 'bu:' .. id)
    if b[1] then
      call('SREM', P .. 'bs:' .. b[1], id)
    end
  end
end
if closed > 0 then
  call('HINCRBY', ctl, F.control.open_messages, -closed)
end
counters.write()
write_status_counts()
write_unfinished()
end_log.write_successes()
ring_ready()
hints.batches, hints.ready = call('EXISTS', P .. 'ended'), call('EXISTS', P .. 'ready' .. ARGV[2])
return { hints.reply() }
