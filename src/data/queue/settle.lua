#!lua flags=allow-oom
-- Ends attempts: a batch of one worker. XACK is the gate: the call that gets 1 from it owns the transition. A zombie, whose work
-- was requeued, and a call that is sent again get 0 and release their own leases only.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] worker, [2] number of items, [3] 1: ring for others when work is left, [4] the mark of its pool; then per item: `<lane>/<entry>`; `<message>
-- <outcome> <duration in ms> <largest number of attempts> <result for the circuit> <letter of its error>`, the last three may be empty; detail, short
-- attempt, long attempt.
-- Outcomes: `d` delivered; `r` retry, detail = delay in ms; `q` dead letter, detail = reason, with `!` before it where the receiver allows no further attempt; `u` ended before an attempt, detail =
-- `f` or `t` (finish_unsent) and the reason; `b` requeued, no attempt counted.
-- An attempt is recorded in its short form (in the message's hash) or its long one (`a:<message>`). That of a batch is recorded in both, as is one whose long
-- form may be dropped (attempt-details.lua).
-- Result for the circuit: `+` or `-` (success, failure) and the generation under which the attempt began, or '' for none.
-- Reply: {hints, per item 1 done or 0 settled by another caller}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/requeue-in-order.lua"
-- @include "includes/ends.lua"
-- @include "includes/circuit.lua"
-- @include "includes/outcome.lua"
-- @include "includes/failover.lua"
-- @include "includes/slow.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/cancelled.lua"
-- @include "includes/finish.lua"
-- @include "includes/retries.lua"
-- @include "includes/failures.lua"
-- @include "includes/account.lua"
-- @include "../shard/includes/batch.lua"
-- @include "../shard/includes/pools.lua"
-- @include "includes/failures-index.lua"
-- @include "../shard/includes/hints.lua"
-- @include "includes/attempt-details.lua"
-- @include "../feed/includes/feed.lua"
-- @include "includes/expiry.lua"
-- @include "includes/finish-unsent.lua"

local item_length = 5
local arguments, match = ARGV, string.match
local worker = ARGV[1]
local held_by = P .. 'held:' .. worker
local count = tonumber(ARGV[2])
local reply, targets, order = {}, {}, {}
local handles, held, closed = {}, {}, 0
local mark = ARGV[4]
-- Whether there may be slow attempts in the worker's pool, or in the one to which an organization has moved.
local has_slow = call('EXISTS', P .. 'slow' .. mark, P .. 'slow', P .. 'pools') > 0
-- By pool.
local slow_released = {}

local targets_of_lanes = {}

local function target_of(lane)
  local known = targets_of_lanes[lane]
  if known then
    return known
  end
  local n = number_of_lane(lane)
  local target = targets[n]
  if not target then
    local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.destination, F.target.mean_ms, F.target.circuit_state,
      F.target.circuit_generation, F.target.consecutive_failures, F.target.successful_probes, F.target.failure_threshold, F.target.success_threshold,
      F.target.failover_targets, F.target.failover_after, F.target.blocked_by, F.target.recent_failures, F.target.route, F.target.has_alerts,
      F.target.moves_on, F.target.in_order)
    target = { n = n, org = t[1], destination = t[2] or '', mean = tonumber(t[3] or ''), measured = {}, released = 0, slow_released = 0, done = {}, back = {} }
    target.circuit = {
      state = t[4] or nil,
      generation = tonumber(t[5] or '0'),
      failures = tonumber(t[6] or '0'),
      probes = tonumber(t[7] or '0'),
      threshold = tonumber(t[8] or '5'),
      probe_threshold = tonumber(t[9] or '2'),
    }
    target.failover, target.failover_after = t[10], tonumber(t[11] or '')
    target.blocked = t[12] or ''
    target.failures = t[13] or ''
    target.route, target.has_alerts, target.moves, target.is_ordered = t[14], t[15], t[16], t[17]
    target.attempts = t[1] and is_for_webhooks(t[1]) and '' or nil
    target.has_probes = t[4] == 'h'
    target.leased = target.org and call('EXISTS', P .. 'lease:' .. target.destination) == 1
    -- By lane its stream; false: what is there is none.
    target.usable = {}
    targets[n] = target
    order[#order + 1] = n
  end
  if target.usable[lane] == nil then
    local kind = call('TYPE', P .. 'w:' .. lane).ok
    target.usable[lane] = target.org and (kind == 'stream' or kind == 'none') and P .. 'w:' .. lane or false
    target.done[lane] = {}
  end
  targets_of_lanes[lane] = target
  return target
end

local item_pattern = '^(%S+) (%l) (%S+) (%d*) (%S*) (%S?)$'

-- Arguments of an item, counted from 1.
local function item(k, position)
  return arguments[4 + (k - 1) * item_length + position]
end

local function release_places(target, handle)
  if target.leased then
    target.released = target.released + call('ZREM', P .. 'lease:' .. target.destination, handle)
  end
  if has_slow and target.org then
    local own = mark_of(target.org)
    if call('ZREM', P .. 'slow' .. own, handle) == 1 then
      call('ZREM', P .. 'slow:' .. account_of(target.org), handle)
      target.slow_released = target.slow_released + 1
      slow_released[own] = (slow_released[own] or 0) + 1
    end
  end
  if target.has_probes then
    call('ZREM', P .. 'probe:' .. target.n, handle)
  end
end

-- Adds fields to those that are written into the message's hash, for the attempt. `counted`: F.message.detail_bytes.
local function record_attempt(fields, id, event, org, attempts, short, long, has_delivered, counted)
  local at = #fields
  fields[at + 1], fields[at + 2] = F.message.attempts, attempts
  if short ~= '' then
    fields[at + 3], fields[at + 4] = attempts, short
  end
  if long == '' then
    return
  end
  if short == '' or event == batch_marker then
    call('HSET', P .. 'a:' .. id, attempts, long)
  else
    fields[at + 5] = F.message.detail_bytes
    fields[at + 6] = details.keep(id, event, org, attempts, long, has_delivered, tonumber(counted or '0'))
  end
end

-- Where a message moves now that was not delivered, why, and what decided that; nil: it stays.
local function next_location(target, id, outcome, detail, attempts_here)
  local is_last = outcome == 'q'
  if is_last and not failover.last_reasons[detail] or outcome == 'b' and not target.moves then
    return nil
  end
  if not target.moves and not target.failover then
    return nil
  end
  local is_open = target.circuit.state == 'o'
  local is_due = is_last or is_open or target.failover_after and attempts_here >= target.failover_after
  if not target.moves and not is_due then
    return nil
  end
  local m = failover.moves_of(id)
  if is_last then
    return failover.candidate(m, target.failover, 'open'), detail, m
  end
  if target.moves and (target.moves == 'a' or failover.is_guest(m)) then
    return failover.next_place(m, target.failover, target.moves), 'destination_unavailable', m
  end
  if not is_due or outcome == 'b' then
    return nil
  end
  return failover.candidate(m, target.failover, false), is_open and 'circuit_open' or 'failed_attempts', m
end

-- Results by their text: {sign, generation}.
local said_before = {}

local function hear_circuit(target, said, id)
  local heard = said_before[said]
  if not heard then
    local sign, generation = match(said, '^([+-])(%d+)$')
    heard = { sign, tonumber(generation or '') }
    said_before[said] = heard
  end
  local sign, generation = heard[1], heard[2]
  if not sign then
    return
  end
  circuit_result(target.n, target.circuit, generation, sign == '+', id)
  target.measured[sign == '+' and F.target.last_success_ms or F.target.last_failure_ms] = now
end

for k = 1, count do
  handles[k] = item(k, 1)
  held[k] = handles[k] .. '/' .. worker
end
-- `held:<worker>` guards against an entry id that an emptied Redis has given out again.
local holding = count > 0 and call('HMGET', held_by, unpack(handles)) or {}
if count > 0 then
  call('ZREM', P .. 'held', unpack(held))
  call('HDEL', held_by, unpack(handles))
end

for k = 1, count do
  local detail, short, long = item(k, 3), item(k, 4), item(k, 5)
  local lane, entry = match(handles[k], '^(%w+)/(.+)$')
  local id, outcome, duration, max, said, letter = match(item(k, 2), item_pattern)
  duration = tonumber(duration)
  local target = target_of(lane)
  release_places(target, handles[k])
  local stream = target.usable[lane]
  if holding[k] ~= id or not stream or call('XACK', stream, 'g', entry) == 0 then
    reply[k] = 0
  else
    reply[k] = 1
    local done = target.done[lane]
    done[#done + 1] = entry
    local key = P .. 'm:' .. id
    local m
    if outcome == 'd' then
      m = call('HMGET', key, F.message.event, F.message.attempts, F.message.expires_ms, F.message.detail_bytes)
    else
      m = call('HMGET', key, F.message.event, F.message.attempts, F.message.expires_ms, F.message.detail_bytes, F.message.attempts_before_move,
        F.message.index_stamp, F.message.cancellation)
    end
    local expires = tonumber(m[3] or '')
    if m[1] then
      local is_batch = m[1] == batch_marker
      local attempts = tonumber(m[2] or '0')
      local is_recorded, has_delivered = short ~= '' or long ~= '', outcome == 'd'
      attempts = is_recorded and attempts + 1 or attempts
      if is_recorded and target.attempts then
        target.attempts = id .. '/' .. attempts .. ' ' .. target.attempts
      end
      if duration >= 0 then
        target.mean = target.mean and (target.mean * 0.8 + duration * 0.2) or duration
        target.has_new_mean = true
        if outcome ~= 'u' then
          counters.attempt(target.org, target.n, target.destination, duration, outcome == 'd' and not is_batch)
        end
        if target.attempts and letter ~= '' then
          counters.error(target.org, target.n, letter)
        elseif outcome ~= 'd' and outcome ~= 'u' and not target.attempts then
          target.failures = with_failure(target.failures, id, attempts)
          target.measured[F.target.recent_failures] = target.failures
        end
      end
      feed.attempt(attempts, short, long)
      local was_probe = target.circuit.state == 'h'
      local is_rejected = outcome == 'q' and string.sub(detail, 1, 1) == '!'
      if is_rejected then
        detail = string.sub(detail, 2)
      end
      hear_circuit(target, said, id)
      if m[7] and outcome ~= 'd' and outcome ~= 'u' then
        outcome, detail = 'q', cancelled.reason
      end
      -- Fields to be written into the message's hash.
      local changes
      local candidate, why, moves = nil, nil, nil
      if outcome == 'r' or outcome == 'q' or outcome == 'b' then
        candidate, why, moves = next_location(target, id, outcome, detail, attempts - tonumber(m[5] or '0'))
      end
      if outcome == 'q' and detail == 'max_retries_exceeded' and was_probe and not is_rejected and not candidate then
        detail = 'circuit_breaker_exhausted'
      end
      if not candidate and expires and expiry.ends_failed(expires, outcome, detail, is_rejected) then
        outcome = 'x'
      end
      if candidate then
        changes = {}
        if not is_batch and duration >= 0 then
          counters.ended(target.org, target.n, target.destination, F.tally.moved)
          feed.message('m', target.org, id, m[1], target.n, target.destination, why, target.route)
        end
      elseif is_batch and (outcome == 'd' or outcome == 'q') then
        changes = {}
        batch_end(id, outcome, detail)
      elseif outcome == 'd' then
        changes = { finish(id, m[1], target.org, target.n, target.destination, 'd') }
        if target.has_alerts then
          end_log.add_success(id, target.org, target.route, target.destination)
        end
      elseif outcome == 'q' then
        changes = { finish(id, m[1], target.org, target.n, target.destination, 'q', detail) }
      elseif outcome == 'x' then
        changes = { finish(id, m[1], target.org, target.n, target.destination, 'q', expiry.reason(target.org)) }
      elseif outcome == 'u' then
        changes = { finish_unsent(id, m[1], target.org, target.n, string.sub(detail, 1, 1), string.sub(detail, 2)) }
      elseif outcome == 'r' then
        local due = now + tonumber(detail)
        changes = { F.message.status, 'r', F.message.due_ms, due }
        retries.add(target.n, id, due)
        if duration >= 0 then
          counters.retried(target.org, target.n)
        end
        if is_batch then
          note_batch_failure(target.org)
        else
          feed.message('r', target.org, id, m[1], target.n, target.destination, nil, target.route)
          note_failure(target.org, id, m[6])
        end
      else
        changes = { F.message.status, attempts > 0 and 'r' or 'p' }
        table.insert(target.back, { lane, id, m[3] })
      end
      if not candidate and (outcome == 'd' or outcome == 'q' or outcome == 'u' or outcome == 'x') then
        closed = closed + (is_batch and 0 or 1)
        if m[2] then
          call('HDEL', key, F.message.due_ms)
        end
        if expires then
          expiry.forget(id)
        end
      end
      if changes[1] == F.message.status then
        count_status(target.org, 'a', changes[2])
      end
      if is_recorded then
        record_attempt(changes, id, m[1], target.org, attempts, short, long, has_delivered, m[4])
      end
      if max ~= '' then
        changes[#changes + 1] = F.message.max_attempts
        changes[#changes + 1] = max
      end
      if #changes > 0 then
        call('HSET', key, unpack(changes))
      end
      if candidate then
        -- The attempt that has just ended counts, too.
        moves.attempts = attempts
        moves.is_rejected = is_rejected
        failover.move(moves, target.n, candidate, why)
      end
    end
  end
end

-- What is acknowledged must be somewhere before anything else is done.
if rawget(retries, 'write') then
  retries.write()
end
for _, n in ipairs(order) do
  local target = targets[n]
  if target.org then
    for lane, entries in pairs(target.done) do
      if #entries > 0 then
        call('XDEL', P .. 'w:' .. lane, unpack(entries))
      end
    end
    local back_in_order = {}
    for k, back in ipairs(target.back) do
      if target.is_ordered then
        back_in_order[k] = back[2]
      else
        enqueue_in(back[1], back[2], back[3])
      end
    end
    if #back_in_order > 0 then
      enqueue_back_in_order(n, back_in_order)
    end
    if #target.back > 0 then
      activate(n)
    end
    local measured = {}
    if target.has_new_mean then
      target.measured[F.target.mean_ms] = string.format('%.1f', target.mean)
    end
    for field, value in pairs(target.measured) do
      measured[#measured + 1] = field
      measured[#measured + 1] = value
    end
    if #measured > 0 then
      call('HSET', P .. 't:' .. n, unpack(measured))
    end
    if target.attempts and target.attempts ~= '' then
      keep_attempts(n, target.attempts)
    end
    settle_target(n)
    write_consecutive_failures(n, target.circuit)
    if target.circuit.changed then
      circuit_release(n)
    end
    if string.sub(target.blocked, 1, 5) == '~slow' and target.mean and target.mean < slow_ms then
      slow_release(n, target.blocked)
    end
    if target.released > 0 then
      wake(target.destination, target.released)
    end
    if target.slow_released > 0 then
      wake('~slow:' .. account_of(target.org), target.slow_released)
    end
  end
end
for own, released in pairs(slow_released) do
  wake('~slow' .. own, released)
end
if closed > 0 then
  call('HINCRBY', ctl, F.control.open_messages, -closed)
end
counters.write()
write_status_counts()
write_unfinished()
if rawget(end_log, 'write_successes') then
  end_log.write_successes()
end
hints.ready, hints.due = call('EXISTS', P .. 'ready' .. mark), next_due_ms()
woken[mark] = nil
ring_woken()
if hints.ready == 1 and ARGV[3] == '1' then
  ring(false, mark)
end
return { hints.reply(), reply }
