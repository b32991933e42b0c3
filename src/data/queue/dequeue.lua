#!lua flags=allow-oom
-- Gives a worker the fairest ready work: organizations first, then their targets, each through its circuit, its cap, the
-- concurrency and rate of its limiter, and the limiter that it shares with others. What is given is in `held` until it is settled. Messages of a target whose circuit is
-- open, or that does not serve, move on (failover.lua).
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] worker, [2] how many messages at most (1..64), [3] hold time in ms, after which the work is requeued, [4] slots of the
-- worker, its slow attempts under way in all shards, and these by account: `<slots> <held>[ <account> <held>…]`, [5] the account that
-- dominates the worker (`SlotShares.dominant`), or '': others go first, [6] the mark of its pool, [7] accounts that get nothing, separated by spaces.
-- Reply: {hints, which look for ends when there are no jobs; unconfigured targets; targets, jobs, texts (includes/jobs.lua)}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/limiter.lua"
-- @include "includes/shared-limiter.lua"
-- @include "includes/circuit.lua"
-- @include "includes/failover.lua"
-- @include "includes/guests.lua"
-- @include "includes/slow.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/jobs.lua"
-- @include "includes/turns.lua"
-- @include "includes/batch-form.lua"
-- @include "includes/account.lua"
-- @include "../shard/includes/pools.lua"
-- @include "includes/lanes.lua"
-- @include "includes/pool-changes.lua"
-- @include "includes/slow-capacity.lua"
-- @include "../shard/includes/hints.lua"
-- @include "../shard/includes/order.lua"
-- @include "includes/waiting.lua"

local visits_limit = 32
local unconfigured_wait_ms = 2000
local slow_wait_ms = 1000
local open_again_ms = 1000
-- A target whose messages go out in order waits for so long for a retry, unless it is activated before (order.lua).
local order_wait_ms = 30000
-- A target may have more than the base cap while its attempts take less than this, and were seen to do so lately.
local fast_ms, proof_ms = 250, 10000
local ramp_step_ms = 1000
-- Most batches of one target at a time: a worker holds a batch in memory.
local max_batches = 2

local worker = ARGV[1]
local left = tonumber(ARGV[2])
local deadline = now + tonumber(ARGV[3])
local mark = ARGV[6]
local ready_organizations = P .. 'ready' .. mark
local slots = tonumber(call('HGET', ctl, F.control.slots .. mark) or '0')
local dominant = ARGV[5] or ''
local without, without_count = accounts_of(ARGV[7])
local base_cap = math.max(8, math.ceil(slots / 10))
local unconfigured = {}
-- One that has not moved yet.
local any_message = { count = 0, left = '' }
-- Arguments of the writes that the whole batch shares.
local held_until, held_by = {}, {}

-- The entries of the last read: their organization, and `done`, the number of those that were given to the worker, removed or moved.
local reading = { entries = {}, org = '', done = 0 }
-- Whether guests of a target were sent away (guests.lua).
local has_sent_guests = false

-- Notes that the worker holds an entry; returns its handle.
local function note_held(lane, entry)
  local handle = lane .. '/' .. entry[1]
  held_until[#held_until + 1] = deadline
  held_until[#held_until + 1] = handle .. '/' .. worker
  held_by[#held_by + 1] = handle
  held_by[#held_by + 1] = entry[2][2]
  return handle
end

-- Takes a target out of the ready ones of its organization, which leaves `ready` at the end of its turn if it has no others.
local function leave_turn(n, org)
  call('ZREM', P .. 'ready:' .. org, n)
end

-- How many entries of the target are read and not settled, in both lanes.
local function pending(n, has_retries)
  local fresh = redis.pcall('XPENDING', P .. 'w:' .. n, 'g')
  local count = failed(fresh) and 0 or fresh[1]
  if has_retries then
    local retries = redis.pcall('XPENDING', P .. 'w:' .. retry_lane(n), 'g')
    count = count + (failed(retries) and 0 or retries[1])
  end
  return count
end

-- The largest number of attempts at a time, and whether they count as slow.
local function cap_of(t, under_way)
  local last = math.max(tonumber(t[F.target.last_failure_ms] or '0'), tonumber(t[F.target.last_success_ms] or '0'))
  local is_stalled = under_way > 0 and now - math.max(last, tonumber(t[F.target.busy_since_ms] or '0')) > slow_ms
  if not t[F.target.mean_ms] or is_stalled or tonumber(t[F.target.mean_ms]) >= slow_ms then
    return base_cap, true
  end
  if tonumber(t[F.target.mean_ms]) < fast_ms and now - last < proof_ms then
    return math.max(base_cap, math.floor(slots / 2)), false
  end
  return base_cap, false
end

-- After an outage or a pause the cap doubles every second, from the number of probes on.
local function ramp_of(n, t, cap)
  local began = tonumber(t[F.target.ramp_began_ms])
  if began > now then
    -- The clock was set back.
    began = now
    call('HSET', P .. 't:' .. n, F.target.ramp_began_ms, began)
  end
  local ramp = tonumber(t[F.target.success_threshold] or '1') * 2 ^ math.floor((now - began) / ramp_step_ms)
  if ramp >= cap then
    call('HDEL', P .. 't:' .. n, F.target.ramp_began_ms)
    return cap
  end
  return ramp
end

-- Reads up to `count` unread entries of both lanes, at least half of them fresh ones while there are any. Returns a list of
-- {lane, entry}, and whether the lanes have no more; nil when there is no lane at all. With `look`, as read_lane, they stay unread.
local function read(n, has_retries, count, look)
  local read_some = look or read_lane
  if not has_retries then
    local fresh = read_some(n, count)
    if not fresh then
      return nil
    end
    local found = {}
    for k, entry in ipairs(fresh) do
      found[k] = { n, entry }
    end
    return found, #fresh < count
  end
  local found = {}
  local function take(lane, most)
    local entries = most > 0 and read_some(lane, most) or {}
    for _, entry in ipairs(entries) do
      found[#found + 1] = { lane, entry }
    end
    return most > 0 and #entries < most
  end
  local no_fresh = take(n, math.ceil(count / 2))
  local no_retries = take(retry_lane(n), count - #found)
  if not no_fresh then
    no_fresh = take(n, count - #found)
  end
  return found, no_fresh and no_retries
end

-- Reads the next message of an ordered target that has none under way: a retry before a fresh one. Returns the same as read.
local function read_in_order(n, has_retries)
  local retry = has_retries and (read_lane(retry_lane(n), 1) or {})[1]
  if retry then
    return { { retry_lane(n), retry } }, false
  end
  return read(n, nil, 1)
end

-- Returns a function that returns the unread entries of lanes as read_lane does, and leaves them unread.
local function looker()
  local last = {}
  return function(lane, count)
    local entries = unread(lane, count, last[lane])
    last[lane] = #entries > 0 and entries[#entries][1] or last[lane]
    return entries
  end
end

-- Moves messages of a target whose circuit is open, or that does not serve, to where they may go; returns how many it looked at, and how many stay.
local function move_on(n, org, t, why, quantum)
  local entries, is_empty = read(n, t[F.target.has_retry_lane], quantum, looker())
  local stay = 0
  for _, found in ipairs(entries) do
    local lane, entry = found[1], found[2]
    local m = failover.moves_of(entry[2][2])
    local place = nil
    if m.event then
      local leaves = t[F.target.moves_on] == 'a' or t[F.target.moves_on] and failover.is_guest(m)
      place = leaves and failover.next_place(m, t[F.target.failover_targets], t[F.target.moves_on])
        or failover.candidate(m, t[F.target.failover_targets], false)
    end
    if place then
      failover.move_out(lane, entry, m, n, place, why)
    else
      if m.event then
        -- The next call looks at others first.
        enqueue_in(lane, m.id, m.expires)
        stay = stay + 1
      end
      remove_entry(lane, entry[1])
    end
  end
  remove_drained(n)
  if is_empty and stay == 0 then
    leave_turn(n, org)
  end
  return #entries, stay
end

-- What cannot move waits until the target serves again, or its setting is applied again.
local function hold(n, org)
  leave_turn(n, org)
  call('HSET', P .. 't:' .. n, F.target.paused_since_ms, integer(now))
  call('SADD', P .. 'paused', n)
end

-- Sends away what a target has whose destination does not serve. Returns what that counts towards its share.
local function send_away(n, org, t, start, quantum)
  local looked_at, stay = move_on(n, org, t, 'destination_unavailable', quantum)
  call('HSET', P .. 't:' .. n, F.target.finish_tag, start + looked_at)
  if stay > 0 then
    hold(n, org)
  elseif looked_at == quantum then
    call('ZADD', P .. 'ready:' .. org, start + looked_at, n)
  end
  return 0
end

-- The same of a target whose circuit is open. While no failover destination is free it looks again soon.
local function give_over(n, org, t, start, quantum)
  if not failover.candidate(any_message, t[F.target.failover_targets], false) then
    circuit_park(n, org)
    if t[F.target.failover_targets] then
      waiting.add_sooner('!' .. n, org, now + open_again_ms)
    end
    return 0
  end
  local looked_at, stay = move_on(n, org, t, 'circuit_open', quantum)
  call('HSET', P .. 't:' .. n, F.target.finish_tag, start + looked_at)
  if stay > 0 and stay == looked_at then
    circuit_park(n, org)
    waiting.add_sooner('!' .. n, org, now + open_again_ms)
  elseif looked_at == quantum or stay > 0 then
    call('ZADD', P .. 'ready:' .. org, start + looked_at, n)
  end
  return 0
end

local target_fields = {
  F.target.route, F.target.destination, F.target.revision, F.target.mean_ms, F.target.circuit_state, F.target.cooldown_end_ms,
  F.target.circuit_generation, F.target.ramp_began_ms, F.target.last_failure_ms, F.target.last_success_ms, F.target.success_threshold,
  F.target.failover_targets, F.target.has_retry_lane, F.target.busy_since_ms, F.target.batch_layout, F.target.shared_limiter, F.target.moves_on,
  F.target.seen_fresh_entry, F.target.seen_retry_entry, F.target.in_order,
}

-- Serves one target; returns how many messages it gave, and what that counts towards its share.
local function serve(n, org, start, quantum)
  local key = P .. 't:' .. n
  local values = call('HMGET', key, unpack(target_fields))
  local t = {}
  for k, field in ipairs(target_fields) do
    t[field] = values[k] or nil
  end
  local destination = t[F.target.destination]
  if not destination then
    leave_turn(n, org)
    return 0
  end
  if not t[F.target.revision] then
    unconfigured[#unconfigured + 1] = { n, org, t[F.target.route], destination, '', '0' }
    park(n, org, '?' .. n, now + unconfigured_wait_ms)
    return 0
  end
  if t[F.target.moves_on] == 'a' then
    return send_away(n, org, t, start, quantum)
  end
  if t[F.target.moves_on] then
    send_guests_away(n, t)
    has_sent_guests = true
  end
  if t[F.target.circuit_state] == 'o' and now >= tonumber(t[F.target.cooldown_end_ms]) then
    circuit_begin(n, 'h')
    call('ZREM', P .. 'waiting', '!' .. n)
    t[F.target.circuit_state], t[F.target.circuit_generation] = 'h', integer(tonumber(t[F.target.circuit_generation] or '0') + 1)
  end
  if t[F.target.circuit_state] == 'o' then
    return give_over(n, org, t, start, quantum)
  end

  local under_way = pending(n, t[F.target.has_retry_lane])
  local cap, is_slow = cap_of(t, under_way)
  if t[F.target.ramp_began_ms] then
    cap = ramp_of(n, t, cap)
  end
  local room = cap - under_way
  if t[F.target.circuit_state] == 'h' then
    call('ZREMRANGEBYSCORE', P .. 'probe:' .. n, '-inf', now)
    room = math.min(room, tonumber(t[F.target.success_threshold] or '1') - call('ZCARD', P .. 'probe:' .. n))
  end
  if t[F.target.batch_layout] then
    room = math.min(room, max_batches - under_way)
  elseif t[F.target.in_order] then
    room = math.min(room, 1 - under_way)
  end
  if room <= 0 then
    leave_turn(n, org)
    call('HSET', key, F.target.blocked_by, 'cap')
    return 0
  end
  if t[F.target.in_order] and not (t[F.target.has_retry_lane] and lane_length(retry_lane(n)) > 0) and waiting_retries(n) > 0 then
    park(n, org, '~o' .. n, now + order_wait_ms)
    return 0
  end
  local allowed = math.min(quantum, room)
  if is_slow then
    local slow, limiter = slow_capacity(org, mark, slots, under_way, ARGV[4])
    if slow == 0 then
      park(n, org, limiter, now + slow_wait_ms)
      return 0
    end
    allowed = math.min(allowed, slow)
  end
  local l = call('HMGET', P .. 'l:' .. destination, F.limiter.emission_us, F.limiter.burst, F.limiter.concurrency)
  if l[3] then
    local free, at = lease_peek(destination, tonumber(l[3]))
    if free == 0 then
      park(n, org, destination, at)
      return 0
    end
    allowed = math.min(allowed, free)
  end
  if l[1] then
    local tokens, wait_us = rate_peek(destination, tonumber(l[1]), tonumber(l[2]))
    if tokens == 0 then
      park(n, org, destination, now + math.ceil(wait_us / 1000))
      return 0
    end
    allowed = math.min(allowed, tokens)
  end
  local shared = t[F.target.shared_limiter] and shared_limiters.of(t[F.target.shared_limiter])
  if shared then
    local room, at = shared_limiters.room(shared)
    local share = math.max(1, math.floor(room / math.max(1, shared.woken, call('ZCARD', P .. 'ready:' .. org))))
    if shared.woken > 0 then
      shared.woken, shared.is_changed = shared.woken - 1, true
    end
    if room == 0 then
      park(n, org, t[F.target.shared_limiter], at)
      return 0
    end
    allowed = math.min(allowed, share)
  end

  local entries, is_empty, batch_due
  if t[F.target.batch_layout] then
    entries, is_empty, batch_due = batch_read(n, t[F.target.has_retry_lane], t[F.target.batch_layout], allowed, worker)
  elseif t[F.target.in_order] then
    entries, is_empty = read_in_order(n, t[F.target.has_retry_lane])
  else
    entries, is_empty = read(n, t[F.target.has_retry_lane], allowed)
    if entries and not is_empty and not t[F.target.has_retry_lane] and under_way == 0 then
      -- All that it has was leased: it needs no second visit.
      is_empty = lane_length(n) == #entries
    end
  end
  if not entries then
    leave_turn(n, org)
    return 0
  end
  local given, dropped = 0, false
  reading = { entries = entries, org = org, done = 0 }
  for k, found in ipairs(entries) do
    local lane, entry = found[1], found[2]
    local id = entry[2][2]
    reading.done = k - 1
    local guest = t[F.target.moves_on] and failover.guest_of(id)
    local place = guest and failover.next_place(guest, t[F.target.failover_targets], t[F.target.moves_on])
    local attempts = not place and add_job(lane, entry[1], id, true)
    if attempts then
      count_status(org, waiting_letter(attempts), 'a')
      local handle = note_held(lane, entry)
      if l[3] then
        call('ZADD', P .. 'lease:' .. destination, deadline, handle)
      end
      if t[F.target.circuit_state] == 'h' then
        call('ZADD', P .. 'probe:' .. n, deadline, handle)
      end
      if is_slow then
        call('ZADD', P .. 'slow' .. mark, deadline, handle)
        call('ZADD', P .. 'slow:' .. account_of(org), deadline, handle)
      end
      given = given + 1
    else
      dropped = true
      if place then
        failover.move_out(lane, entry, guest, n, place, 'destination_unavailable')
      else
        remove_entry(lane, entry[1])
      end
    end
  end
  reading.done = #entries
  if given > 0 then
    job_target(n, org, t[F.target.route], destination, t[F.target.revision], t[F.target.circuit_generation], is_slow, t[F.target.in_order])
    if is_slow then
      slow_begin(org, given)
    end
    if l[1] then
      rate_charge(destination, tonumber(l[1]), tonumber(l[2]), given)
    end
    if shared then
      shared_limiters.charge(shared, given)
    end
  end
  if under_way == 0 and given > 0 then
    call('HSET', key, F.target.finish_tag, start + given, F.target.busy_since_ms, now)
  else
    call('HSET', key, F.target.finish_tag, start + given)
  end
  if dropped then
    remove_drained(n)
  end
  if is_empty and batch_due then
    park(n, org, '~b' .. n, batch_due)
  elseif is_empty then
    leave_turn(n, org)
  elseif given >= room then
    leave_turn(n, org)
    call('HSET', key, F.target.blocked_by, 'cap')
  else
    call('ZADD', P .. 'ready:' .. org, start + given, n)
  end
  return given
end

local visits = 0

local function give_turn(org, org_start, count)
  call('HSET', ctl, F.control.virtual_clock .. mark, org_start)
  local ready = P .. 'ready:' .. org
  local share = math.ceil(left / count)
  local served, max_visits = 0, visits + math.ceil((visits_limit - visits) / count)
  local is_over = false
  while served < share and visits < max_visits do
    local target = call('ZRANGE', ready, 0, 0, 'WITHSCORES')
    if not target[1] then
      is_over = true
      break
    end
    visits = visits + 1
    call('HSET', P .. 'o:' .. org, F.organization.clock, target[2])
    local quantum = math.ceil((share - served) / call('ZCARD', ready))
    served = served + serve(target[1], org, tonumber(target[2]), quantum)
  end
  left = left - served
  -- A turn that gave nothing counts, too, or targets that cannot be served would hold up the other organizations.
  local finish = org_start + math.max(1, served)
  call('HSET', P .. 'o:' .. org, F.organization.finish_tag, finish)
  if not is_over and call('EXISTS', ready) == 1 then
    call('ZADD', ready_organizations, finish, org)
  else
    call('ZREM', ready_organizations, org)
  end
  return finish
end

local function give_turns()
  while left > 0 and visits < visits_limit do
    local org, org_start, count, passed = next_organization(ready_organizations, dominant, without, without_count)
    if not org then
      break
    end
    visits = visits + 1
    if mark_of(org) == mark then
      local finish = give_turn(org, org_start, count)
      for _, name in ipairs(passed) do
        -- An organization that was passed over does not get the turns that it lost later.
        call('ZADD', ready_organizations, 'XX', 'GT', finish, name)
      end
    else
      to_own_pool(org, mark)
    end
  end
end

-- What was read before an error is held, as after a lost reply: it is requeued at the deadline.
local is_done, trouble = pcall(give_turns)
if not is_done then
  for k = reading.done + 1, #reading.entries do
    local lane, entry = reading.entries[k][1], reading.entries[k][2]
    local key = P .. 'm:' .. entry[2][2]
    -- One that has moved is in the lane no more.
    if #call('XRANGE', P .. 'w:' .. lane, entry[1], entry[1]) > 0 then
      local status = redis.pcall('HGET', key, F.message.status)
      if status == 'p' or status == 'r' then
        call('HSET', key, F.message.status, 'a')
        count_status(reading.org, status, 'a')
      end
      note_held(lane, entry)
    end
  end
end
if #held_by > 0 then
  call('ZADD', P .. 'held', unpack(held_until))
  call('HSET', P .. 'held:' .. worker, unpack(held_by))
end
if not is_done then
  write_status_counts()
  error(trouble, 0)
end
if has_sent_guests then
  go_on_with_guests()
end
if rawget(failover, 'ask') then
  -- A message may have asked for a place to move to.
  failover.ask()
end
if rawget(shared_limiters, 'write') then
  shared_limiters.write()
end
write_status_counts()
local more = call('ZCARD', ready_organizations)
if more > 0 then
  ring(false, mark)
  hints.ready = dominant ~= '' and has_others(ready_organizations, dominant, without, more) and 2 or 1
end
if #job_lines == 0 then
  hints.ends = call('EXISTS', P .. 'ends')
end
hints.due = next_due_ms()
return { hints.reply(), unconfigured, jobs_reply() }
