-- @include "../../shard/includes/shard.lua"
-- @created-on-first-use

-- A limiter `l:<destination>` has the fields of F.limiter (../../shard/hash-fields.ts).

-- GCRA: how many may go now, and else after how many µs the next may. Nothing is charged.
local function rate_peek(limiter, emission, burst)
  local tat = math.max(tonumber(call('GET', P .. 'rate:' .. limiter) or '0'), now_us)
  local tolerance = emission * (burst - 1)
  local count = math.floor((now_us + tolerance - tat) / emission) + 1
  if count > 0 then
    return count, 0
  end
  return 0, tat - now_us - tolerance
end

local function rate_charge(limiter, emission, burst, count)
  local tat = math.max(tonumber(call('GET', P .. 'rate:' .. limiter) or '0'), now_us) + count * emission
  local lifetime = math.ceil((tat - now_us + emission * burst) / 1000) + 1
  call('SET', P .. 'rate:' .. limiter, integer(tat + 0.5), 'PX', integer(lifetime))
end

-- What was charged under an earlier setting, such as one an hour, counts for no more than this one would ever have to wait for.
local function rate_adapt(limiter, emission, burst)
  local key = P .. 'rate:' .. limiter
  local most = now_us + emission * burst
  if tonumber(call('GET', key) or '0') > most then
    call('SET', key, integer(most), 'PX', integer(math.ceil(2 * emission * burst / 1000) + 1))
  end
end

-- How many leases are free, and else when (ms) the earliest runs out.
local function lease_peek(limiter, concurrency)
  local key = P .. 'lease:' .. limiter
  call('ZREMRANGEBYSCORE', key, '-inf', now)
  local free = concurrency - call('ZCARD', key)
  if free > 0 then
    return free, 0
  end
  return 0, tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end
