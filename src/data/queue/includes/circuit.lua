-- @include "ends.lua"
-- @include "own-events.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "../../feed/includes/feed.lua"
-- @include "waiting.lua"
-- @created-on-first-use

-- The circuit breaker of a target, in its hash (../../shard/hash-fields.ts). The same machine as a pure function: src/core/circuit.ts.
--
-- `broken` is the set of targets whose circuit is not closed; `circuits` the stream of transitions, which the leader reads.
local transitions_kept = 10000

-- Begins a state: `o`, `h`, or `c` closed. `id`: the message whose attempt has decided that; nil: none. The generation tells attempts that began before it from later ones.
local function circuit_begin(n, state, id)
  local key = P .. 't:' .. n
  local t = call('HMGET', key, F.target.organization, F.target.route, F.target.destination, F.target.circuit_generation, F.target.outage_began_ms,
    F.target.cooldown_ms, F.target.consecutive_failures, F.target.circuit_state, F.target.has_alerts, F.target.has_own_events)
  local generation = tonumber(t[4] or '0') + 1
  call('HSET', key, F.target.circuit_generation, generation, F.target.circuit_began_ms, now)
  call('HDEL', key, F.target.successful_probes, F.target.cooldown_end_ms, F.target.ramp_began_ms)
  if state == 'c' then
    call('HDEL', key, F.target.circuit_state, F.target.consecutive_failures, F.target.outage_began_ms)
    call('HSET', key, F.target.ramp_began_ms, now)
    call('SREM', P .. 'broken', n)
    call('ZREM', P .. 'waiting', '!' .. n)
    call('DEL', P .. 'probe:' .. n)
  else
    call('HSET', key, F.target.circuit_state, state)
    call('SADD', P .. 'broken', n)
  end
  if state == 'o' then
    local ends = now + tonumber(t[6] or '300000')
    call('HSET', key, F.target.cooldown_end_ms, ends, F.target.outage_began_ms, t[5] or now)
    waiting.add('!' .. n, t[1], ends)
    call('DEL', P .. 'probe:' .. n)
  end
  if state == (t[8] or 'c') then
    return
  end
  feed.circuit(state, t[1], t[2], t[3])
  -- A probe that fails goes on with the same outage.
  if state == 'c' or (state == 'o' and not t[8]) then
    if t[9] then
      end_log.add(t[1], t[2], t[3], state, 1, '-')
    end
    if t[10] then
      note_own(state, t[1], t[2], t[3], id or '-', '')
    end
  end
  call('XADD', P .. 'circuits', 'MAXLEN', '~', transitions_kept, new_entry(),
    F.transitions.route, t[2], F.transitions.destination, t[3], F.transitions.state, state, F.transitions.at_ms, integer(now),
    F.transitions.consecutive_failures, t[7] or '0')
end

-- Lets a target go on that waits for its circuit.
local function circuit_release(n)
  if call('HGET', P .. 't:' .. n, F.target.blocked_by) == '!' then
    call('HDEL', P .. 't:' .. n, F.target.blocked_by)
    if queued(n) > 0 then
      return activate(n)
    end
  end
  return false
end

-- Parks a target until its circuit lets probes through.
local function circuit_park(n, org)
  deactivate(n, org)
  call('HSET', P .. 't:' .. n, F.target.blocked_by, '!')
end
