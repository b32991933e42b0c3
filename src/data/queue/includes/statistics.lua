-- @include "../../shard/includes/shard.lua"

-- What happened in periods of five minutes, an hour, a day (UTC): hashes `st:<org>:<level><number of the period since 1970>`, which
-- Redis drops after their time. A field is a packed list of four numbers and pairs of a latency bucket and how many attempts fell
-- into it; the pairs of 161 and 162, which are no buckets, count the failed attempts after which another one was planned, and the openings of the circuit:
--   <number of a target>  delivered, failed, moved to a failover destination, sum of the durations of its attempts in ms, pairs
--   <route>               events taken, events filtered, deliveries that failed before they were sent, 0
--   <source>              events, duplicates, 0, 0
--   *                     the sum of all targets here; what failed before it was sent counts as failed
--   *e                    events, duplicates, events filtered, 0: of all sources and routes here
-- Hashes of organizations for webhooks have the fields in webhook-statistics.lua, and the third number of a target is messages made.
-- The same levels are in statistics-periods.ts; the buckets are those of core/latency-histogram.ts.
local period_levels = {
  { name = 'm', ms = 300000, kept_s = 93600 },
  { name = 'h', ms = 3600000, kept_s = 691200 },
  { name = 'd', ms = 86400000, kept_s = 2764800 },
}
-- As many as `unpack` and one command take with ease.
local fields_per_command = 500

-- The stored list (nil: none) with what is added.
local function merged(stored, added)
  local sum, buckets = { added[1], added[2], added[3], added[4] }, added[5]
  local seen = {}
  if stored then
    for k = 1, 4 do
      sum[k] = sum[k] + stored[k]
    end
    for k = 5, #stored, 2 do
      local bucket = stored[k]
      seen[bucket] = true
      sum[k] = bucket
      sum[k + 1] = stored[k + 1] + (buckets[bucket] or 0)
    end
  end
  for bucket, count in pairs(buckets) do
    if not seen[bucket] then
      sum[#sum + 1] = bucket
      sum[#sum + 1] = count
    end
  end
  return sum
end

local function period_key(org, level, at_ms)
  return P .. 'st:' .. org .. ':' .. level.name .. integer(math.floor(at_ms / level.ms))
end

local function write_period(key, kept_s, fields, changes)
  local stored = call('HMGET', key, unpack(fields))
  local values, is_new = {}, true
  for k, field in ipairs(fields) do
    is_new = is_new and not stored[k]
    values[2 * k - 1] = field
    values[2 * k] = cmsgpack.pack(merged(stored[k] and cmsgpack.unpack(stored[k]), changes[field]))
  end
  call('HSET', key, unpack(values))
  if is_new then
    call('EXPIRE', key, kept_s)
  end
end

-- Adds changes (field → {four numbers, {bucket → count}}) that happened at `at_ms`.
local function write_periods(org, changes, at_ms)
  local fields = {}
  local function write()
    for _, level in ipairs(period_levels) do
      write_period(period_key(org, level, at_ms), level.kept_s, fields, changes)
    end
    fields = {}
  end
  for field in pairs(changes) do
    fields[#fields + 1] = field
    if #fields == fields_per_command then
      write()
    end
  end
  if #fields > 0 then
    write()
  end
end

-- Adds one change to another.
local function add_change(sum, change)
  for k = 1, 4 do
    sum[k] = sum[k] + change[k]
  end
  for bucket, count in pairs(change[5]) do
    sum[5][bucket] = (sum[5][bucket] or 0) + count
  end
end

-- Removes everything of an organization.
local function remove_statistics(org)
  for _, level in ipairs(period_levels) do
    local last = math.floor(now / level.ms)
    for number = last - math.floor(level.kept_s * 1000 / level.ms) - 1, last + 1 do
      local key = period_key(org, level, number * level.ms)
      call('UNLINK', key, key .. ':f', key .. ':b')
    end
  end
  for _, name in ipairs(call('SMEMBERS', P .. 'st:' .. org .. ':t')) do
    call('DEL', P .. 'st:' .. org .. ':t' .. name)
    call('ZREM', P .. 'tallies', org .. ' ' .. name)
  end
  call('DEL', P .. 'st:' .. org .. ':t', P .. 'un:' .. org)
end
