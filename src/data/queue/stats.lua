#!lua flags=no-writes
-- Figures of a shard for the metrics.
--
-- KEYS: see ../shard/includes/shard.lua. ARGV[1] mark of a pool (../shard/includes/pools.lua), of which the oldest and the last figure are; the others are of the shard.
-- Reply: {unfinished messages, retries that wait, held by workers, dead letters, when the oldest unread message was accepted (ms) or '', entries in the outbox,
-- age of the oldest of them in ms, messages that more workers of the pool could deliver sooner, scheduled messages that wait for their time, the messages of
-- destinations and of endpoints that were cancelled and that expired, messages that wait for an earlier one of their target with order (order.lua)}. Retries
-- do not include scheduled messages. Where more than a thousand targets have scheduled messages, or more than about a hundred have order, a sample is counted.
-- The oldest is looked for in at most 128 ready targets. What more workers could not deliver sooner, since it waits for its next attempt, a
-- circuit, a limit, the end of a pause, the rest of its batch or an earlier message, is counted in samples where it is much. So is what pools other than the
-- default one have; it has the rest.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/accepted-time.lua"
-- @include "includes/outbox-entries.lua"

local mark = ARGV[1]
local oldest, looked = '', 0
for _, org in ipairs(call('ZRANGE', P .. 'ready' .. mark, 0, 63)) do
  for _, n in ipairs(call('ZRANGE', P .. 'ready:' .. org, 0, 127 - looked)) do
    looked = looked + 1
    local entry = redis.pcall('XRANGE', P .. 'w:' .. n, '-', '+', 'COUNT', 1)
    local id = not failed(entry) and entry[1] and entry[1][2][2]
    local accepted = id and accepted_ms(id)
    if accepted and (oldest == '' or accepted < oldest) then
      oldest = accepted
    end
  end
  if looked >= 128 then
    break
  end
end

-- Messages of targets that are blocked for another reason than a lack of workers: their own cap and the share of slow targets grow with these. Of each
-- target `spared` are not counted.
local seen = {}
local function blocked_in(targets, spared)
  local sum = 0
  for _, n in ipairs(targets) do
    if not seen[n] then
      seen[n] = true
      sum = sum + math.max(0, queued(n) - spared)
    end
  end
  return sum
end

-- `sum` was found in `looked` of `all`.
local function projected(sum, looked, all)
  return looked == 0 and 0 or sum * math.max(1, all / looked)
end

local blocked = 0
for _, set in ipairs({ 'paused', 'broken' }) do
  local targets = call('SSCAN', P .. set, 0, 'COUNT', 128)[2]
  blocked = blocked + projected(blocked_in(targets, 0), #targets, call('SCARD', P .. set))
end
local limiters = call('ZRANGE', P .. 'waiting', 0, 63)
local under_limiters = 0
for _, limiter in ipairs(limiters) do
  local kind = string.sub(limiter, 1, 5)
  if kind ~= '~slow' and string.sub(kind, 1, 1) ~= '!' then
    local targets = call('ZRANGE', P .. 'wait:' .. limiter, 0, 15)
    under_limiters = under_limiters + projected(blocked_in(targets, 0), #targets, call('ZCARD', P .. 'wait:' .. limiter))
  end
end
blocked = blocked + projected(under_limiters, #limiters, call('ZCARD', P .. 'waiting'))
local ordered = call('SSCAN', P .. 'ordered', 0, 'COUNT', 128)[2]
blocked = blocked + projected(blocked_in(ordered, 1), #ordered, call('SCARD', P .. 'ordered'))

local open, due = tonumber(call('HGET', ctl, F.control.open_messages) or '0'), call('ZCARD', P .. 'due')

local function scheduled_messages()
  local found, sum = call('HSCAN', P .. 'scheduled', 0, 'COUNT', 1000)[2], 0
  for k = 2, #found, 2 do
    sum = sum + tonumber(found[k])
  end
  return math.min(due, math.floor(projected(sum, #found / 2, call('HLEN', P .. 'scheduled'))))
end
local scheduled = scheduled_messages()

-- What is paused, or waits for a circuit, waits for that.
local function behind_earlier()
  local sum = 0
  for _, n in ipairs(ordered) do
    local t = call('HMGET', P .. 't:' .. n, F.target.paused_since_ms, F.target.circuit_state, F.target.blocked_by)
    if not t[1] and t[2] ~= 'o' then
      sum = sum + (t[3] == '~o' .. n and queued(n) or math.max(0, queued(n) - 1))
    end
  end
  return math.floor(projected(sum, #ordered, call('SCARD', P .. 'ordered')))
end

local function servable(n)
  local t = call('HMGET', P .. 't:' .. n, F.target.paused_since_ms, F.target.blocked_by, F.target.in_order)
  if t[1] or t[2] and t[2] ~= 'cap' and string.sub(t[2], 1, 5) ~= '~slow' and string.sub(t[2], 1, 1) ~= '?' then
    return 0
  end
  return t[3] and math.min(1, queued(n)) or queued(n)
end

local function servable_in(targets, all)
  local sum, looked = 0, math.min(16, #targets)
  for k = 1, looked do
    sum = sum + servable(targets[k])
  end
  return projected(sum, looked, all)
end

-- Estimates the servable messages of an organization, by at most 16 of its targets: those that are ready, or where there are none, any.
local function servable_of(org)
  local ready = P .. 'ready:' .. org
  if call('EXISTS', ready) == 1 then
    return servable_in(call('ZRANGE', ready, 0, 15), call('ZCARD', ready))
  end
  local found = call('HSCAN', P .. 'tn:' .. org, 0, 'COUNT', 16)[2]
  local numbers = {}
  for k = 2, #found, 2 do
    numbers[#numbers + 1] = found[k]
  end
  return servable_in(numbers, call('HLEN', P .. 'tn:' .. org))
end

-- Estimates those of a pool other than the default one, by about `most` of its organizations: those that are ready, or where there are none, any.
local function servable_by(pool, most)
  local ready = P .. 'ready' .. pool
  local organizations, all
  if call('EXISTS', ready) == 1 then
    organizations, all = call('ZRANGE', ready, 0, most - 1), call('ZCARD', ready)
  else
    organizations, all = call('SSCAN', P .. 'pool' .. pool, 0, 'COUNT', most)[2], call('SCARD', P .. 'pool' .. pool)
  end
  local sum, looked = 0, math.min(most, #organizations)
  for k = 1, looked do
    sum = sum + servable_of(organizations[k])
  end
  return math.floor(projected(sum, looked, all))
end

local function servable_by_default()
  local sum = open - due - blocked
  local pools = call('SMEMBERS', P .. 'pools')
  for k = 1, math.min(#pools, 16) do
    sum = sum - servable_by(pools[k], math.ceil(16 / #pools))
  end
  return math.max(0, math.floor(sum))
end

return {
  open,
  due - scheduled,
  call('ZCARD', P .. 'held'),
  call('XLEN', P .. 'dead'),
  oldest,
  call('XLEN', P .. 'out'),
  oldest_wait_ms() or 0,
  mark == '' and servable_by_default() or servable_by(mark, 16),
  scheduled,
  call('HMGET', ctl, 'cancelled destination', 'cancelled endpoint', 'expired destination', 'expired endpoint'),
  behind_earlier(),
}
