-- @include "circuit.lua"
-- @include "../../shard/includes/count.lua"
-- @include "../../shard/includes/shard.lua"

-- The consecutive failures are written once for all results that a script has of a target (write_consecutive_failures).
local function write_consecutive_failures(n, c)
  if not c.has_unwritten_failures then
    return
  end
  c.has_unwritten_failures = false
  if c.failures > 0 then
    call('HSET', P .. 't:' .. n, F.target.consecutive_failures, c.failures)
  else
    call('HDEL', P .. 't:' .. n, F.target.consecutive_failures)
  end
end

-- Applies the result of an attempt to the circuit of its target. `c` is the circuit as the script has read it: state, generation,
-- failures, probes, threshold, probe_threshold. `id`: the message. Results of attempts that began in an older generation change nothing.
-- A circuit that opens is counted. A failed probe is part of the same opening.
local function circuit_result(n, c, generation, succeeded, id)
  if generation ~= c.generation or c.state == 'o' then
    return
  end
  local is_probe = c.state == 'h'
  if not succeeded then
    c.failures = c.failures + 1
    c.has_unwritten_failures = true
    if is_probe or c.failures >= c.threshold then
      write_consecutive_failures(n, c)
      if not is_probe then
        counters.circuit_opening(call('HGET', P .. 't:' .. n, F.target.organization), n)
      end
      circuit_begin(n, 'o', id)
      c.state, c.generation, c.changed = 'o', generation + 1, true
    end
  elseif is_probe then
    c.probes = c.probes + 1
    call('HSET', P .. 't:' .. n, F.target.successful_probes, c.probes)
    if c.probes >= c.probe_threshold then
      circuit_begin(n, 'c', id)
      c.state, c.generation, c.failures, c.changed = nil, generation + 1, 0, true
    end
  elseif c.failures > 0 then
    c.failures = 0
    c.has_unwritten_failures = true
  end
end
