#!lua
-- Makes new messages of the same events for the first targets of messages that have ended. Without allow-oom, as accept.lua.
--
-- KEYS: see ../shard/includes/shard.lua; the shard is the home of the old messages and of the new ones.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): max_waiting: how many messages may wait at a target for a replay that is paced,
-- nil for one that is not; elsewhere: where all of them go instead, `<shard>/<destination>`, which the caller has judged, or ''; messages, at most 50, {old,
-- new, id of the old one}. New messages of a paced replay are in the lane of retries, unless their target forms batches.
-- Reply: per message one of
--   1            made, also by an earlier call with the same arguments
--   `gone`       there is no such message, or no target for it
--   `payload`    its event is gone; in a paced replay also: the message is gone
--   `disabled`, `circuit`, `target_full`   in a paced replay: its target takes none now
--   `ordered`    in a paced replay: its target takes none at any time, because its messages go out in order
-- or `full`, and nothing is made: too much memory is in use.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/count.lua"
-- @include "../queue/includes/status-counts.lua"
-- @include "../queue/includes/unfinished.lua"
-- @include "../queue/includes/new-message.lua"
-- @include "../queue/includes/event-copy.lua"
-- @include "../queue/includes/outbox.lua"
-- @include "../queue/includes/queue-capacity.lua"
-- @include "../queue/includes/intern.lua"
-- @include "../queue/includes/failover.lua"
-- @include "../shard/includes/order.lua"
-- @include "../../redis/scripts/includes/json.lua"

local asked = decoded(ARGV[1])
local max_waiting = asked.max_waiting
local other_shard, other_destination = string.match(asked.elsewhere, '^(%d+)/(.+)$')
-- While the circuit is not closed: as many as it takes for a probe.
local max_probes = 2

-- By target: how many more messages it takes, or why it takes none.
local targets_open = {}
local function limit_of(n)
  local t = call('HMGET', P .. 't:' .. n, F.target.paused_since_ms, F.target.circuit_state, F.target.cooldown_end_ms, F.target.batch_layout,
    F.target.batch_records, F.target.in_order)
  if t[6] then
    return 'ordered'
  end
  if t[1] then
    return 'disabled'
  end
  local most, lane = max_waiting, retry_lane(n)
  if t[4] then
    -- Enough for a batch that is sent and one that is formed.
    most, lane = math.max(most, 2 * tonumber(t[5])), n
  end
  if t[2] == 'o' and tonumber(t[3] or '0') > now then
    return 'circuit'
  elseif t[2] then
    most = max_probes
  end
  return most - lane_length(lane) - waiting_retries(n)
end

-- By destination: messages that were let in.
local let_in = {}

-- Why a target takes no message now; nil: it takes one.
local function take_place(n, destination)
  if not max_waiting or (other_shard and destination ~= other_destination) then
    return nil
  end
  targets_open[n] = targets_open[n] or limit_of(n)
  local open = targets_open[n]
  if type(open) == 'string' then
    return open
  end
  local room = queue_capacity(destination)
  if open <= 0 or (room and room <= (let_in[destination] or 0)) then
    return call('HEXISTS', P .. 't:' .. n, F.target.circuit_state) == 1 and 'circuit' or 'target_full'
  end
  targets_open[n] = open - 1
  let_in[destination] = (let_in[destination] or 0) + 1
  return nil
end

-- Where a message of the route goes instead, written like a candidate of failover; nil: to its own target.
local function detour_of(t)
  if not other_shard or t[3] == other_destination then
    return nil
  end
  return other_shard == own_shard() and intern(t[1], t[2], other_destination) or other_shard .. '/' .. other_destination
end

local outcomes, pending = {}, {}
for at, message in ipairs(asked.messages) do
  local old, new = message.old, message.new
  if call('EXISTS', P .. 'm:' .. new) == 1 then
    outcomes[at] = 1
  else
    local m = call('HMGET', P .. 'm:' .. old, F.message.event, F.message.target, F.message.first_target, F.message.max_attempts, F.message.has_output,
      F.message.subscription, F.message.transform, F.message.status, F.message.replays)
    local n = m[3] or m[2]
    local t = n and call('HMGET', P .. 't:' .. n, F.target.organization, F.target.route, F.target.destination) or {}
    if not t[1] then
      -- A paced replay has seen the message: it was pruned since.
      outcomes[at] = max_waiting and not m[1] and 'payload' or 'gone'
    elseif call('EXISTS', P .. 'e:' .. m[1]) == 0 then
      outcomes[at] = 'payload'
    else
      outcomes[at] = take_place(n, t[3])
      if not outcomes[at] then
        require_lane(t[1], t[2], t[3])
        require_lane(t[1], t[2], other_destination or t[3])
        outcomes[at] = 1
        pending[#pending + 1] = { old = old, new = new, id = message.id, m = m, n = n, t = t }
      end
    end
  end
end
if #pending == 0 then
  return outcomes
end
if call('HGET', ctl, F.control.full) then
  return 'full'
end

local touched = {}
for _, each in ipairs(pending) do
  local m, n, t, new = each.m, each.n, each.t, each.new
  event_refs(m[1], { new })
  local home, home_key = home_of(m[1])
  if home then
    send(home, 'n', F.outbox.event, home_key, F.outbox.message, new)
  end
  call('HINCRBY', ctl, F.control.open_messages, 1)
  local max = m[4] or '1'
  if m[6] then
    max = max .. ' ' .. m[6] .. ' ' .. (m[7] or '')
  end
  if new_message(m[1], t[1], n, { id = new, route = t[2], destination = t[3], max = max, is_paced = max_waiting ~= nil, elsewhere = detour_of(t) }) then
    touched[n] = true
  end
  if other_shard then
    call('HSET', P .. 'm:' .. new, F.message.moves, failover.max_moves)
  end
  if m[8] == 'q' then
    local retries = tonumber(string.match(m[9] or '0', '^%d+'))
    call('HSET', P .. 'm:' .. each.old, F.message.replays, integer(retries + 1) .. ' ' .. integer(now))
  end
  call('HSET', P .. 'm:' .. new, F.message.replay_of, each.id)
  if m[5] then
    call('HSET', P .. 'm:' .. new, F.message.has_output, m[5])
  end
end
counters.write()
write_status_counts()
write_unfinished()
activate_all(touched)
return outcomes
