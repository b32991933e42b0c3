#!lua flags=no-writes
-- Targets of an organization with what waits for them, step by step.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; cursor (begin with 0); max_looks: targets to look at; with_failures: with their newest failed attempts.
-- Reply: {next cursor ('0' at the end), targets {number, route, destination, messages in its fresh lane, retries (each batch one)
-- that wait or are under way, state of its circuit or '', failed attempts {message, number of the attempt, its record}, how many of its
-- fresh messages and of its retries are under way}}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/order.lua"
-- @include "../../redis/scripts/includes/json.lua"

local function failures_of(noted)
  local failures = {}
  for id, attempt in string.gmatch(noted, '(%w+)/(%d+)') do
    local stored = call('HGET', P .. 'a:' .. id, attempt) or call('HGET', P .. 'm:' .. id, attempt)
    if stored and call('HGET', P .. 'm:' .. id, F.message.event) == batch_marker then
      -- A batch is shown as its first member.
      id = string.match(call('GET', P .. 'b:' .. id) or '', '\n(%w+)')
    end
    if stored and id then
      failures[#failures + 1] = { id, attempt, stored }
    end
  end
  return failures
end

local function under_way(lane, length)
  local pending = length > 0 and redis.pcall('XPENDING', P .. 'w:' .. lane, 'g')
  return pending and not failed(pending) and pending[1] or 0
end

local wanted = decoded(ARGV[1])
local scan = call('HSCAN', P .. 'tn:' .. wanted.org, wanted.cursor, 'COUNT', wanted.max_looks)
local found = {}
for k = 1, #scan[2], 2 do
  local route, destination = string.match(scan[2][k], '^(%S+) (%S*)$')
  local n = scan[2][k + 1]
  if destination and destination ~= '' then
    local t = call('HMGET', P .. 't:' .. n, F.target.circuit_state, F.target.has_retry_lane, F.target.recent_failures)
    local waiting = waiting_retries(n)
    local fresh, ready_retries = lane_length(n), t[2] and lane_length(retry_lane(n)) or 0
    local failures = wanted.with_failures and t[3] and failures_of(t[3]) or {}
    found[#found + 1] = {
      n,
      route,
      destination,
      fresh + tonumber(call('HGET', P .. 'scheduled', n) or '0'),
      waiting + ready_retries,
      t[1] or '',
      failures,
      under_way(n, fresh),
      under_way(retry_lane(n), ready_retries),
    }
  end
end
return { scan[1], found }
