#!lua flags=no-writes
-- Circuits of named targets, or of all targets whose circuit is not closed.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org and targets {route, destination}; or cursor (begin with 0) for those not
-- closed, of org alone where it is there.
-- Reply: {next cursor ('0' at the end), circuits {org, route, destination, state or '', consecutive failures, successful probes,
-- state began (ms or ''), outage began, last failure, last success, end of the cooldown, record of the last failed attempt or ''}}. Only named targets
-- have the last one.
-- @include "../shard/includes/shard.lua"
-- @include "../../redis/scripts/includes/json.lua"

-- What is stored of the newest failed attempt; of a webhook endpoint, of the newest attempt.
local function last_failure(n, noted)
  local id, attempt = string.match(noted or call('GET', P .. 'ra:' .. n) or '', '(%w+)/(%d+)')
  return id and (call('HGET', P .. 'a:' .. id, attempt) or call('HGET', P .. 'm:' .. id, attempt)) or ''
end

local found = {}
local function add(n, is_named, only_org)
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.route, F.target.destination, F.target.circuit_state,
    F.target.consecutive_failures, F.target.successful_probes, F.target.circuit_began_ms, F.target.outage_began_ms, F.target.last_failure_ms,
    F.target.last_success_ms, F.target.cooldown_end_ms, F.target.recent_failures)
  if t[1] and (not only_org or t[1] == only_org) then
    local circuit = {}
    for k = 1, 11 do
      circuit[k] = t[k] or ''
    end
    circuit[12] = is_named and t[4] and last_failure(n, t[12]) or ''
    found[#found + 1] = circuit
  end
end

local asked = decoded(ARGV[1])
if asked.cursor then
  local scan = call('SSCAN', P .. 'broken', asked.cursor, 'COUNT', 500)
  for _, n in ipairs(scan[2]) do
    add(n, false, asked.org)
  end
  return { scan[1], found }
end
for _, target in ipairs(asked.targets) do
  local n = call('HGET', P .. 'tn:' .. asked.org, target.route .. ' ' .. target.destination)
  if n then
    add(n, true)
  end
end
return { '0', found }
