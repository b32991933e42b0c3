#!lua
-- Fills the statistics of one period for the targets 1 to ARGV[1], as includes/statistics.lua writes them.
--
-- KEYS[1] hash of the period. ARGV[1] how many targets, [2] attempts per target, [3] lifetime in s; then ids of sources and routes.
-- Reply: how many bytes the hash takes.
local values = {}
local function flush()
  redis.call('HSET', KEYS[1], unpack(values))
  values = {}
end
for n = 1, tonumber(ARGV[1]) do
  local attempts = tonumber(ARGV[2])
  local record, left = { attempts - 1, 1, 0, attempts * (80 + n % 50) }, attempts
  -- Around a bucket of its own, as latencies of one receiver lie.
  for bucket = 40 + n % 20, 60 + n % 20 do
    local count = math.min(left, math.ceil(attempts / 12))
    if count > 0 then
      record[#record + 1] = bucket
      record[#record + 1] = count
      left = left - count
    end
  end
  values[#values + 1] = tostring(n)
  values[#values + 1] = cmsgpack.pack(record)
  if #values >= 1000 then
    flush()
  end
end
for k = 4, #ARGV do
  values[#values + 1] = ARGV[k]
  values[#values + 1] = cmsgpack.pack({ tonumber(ARGV[2]), 3, 0, 0 })
end
-- The sums of the organization, whose latencies lie in all these buckets.
local sum = { (tonumber(ARGV[2]) - 1) * tonumber(ARGV[1]), tonumber(ARGV[1]), 0, tonumber(ARGV[2]) * 105 * tonumber(ARGV[1]) }
for bucket = 40, 79 do
  sum[#sum + 1] = bucket
  sum[#sum + 1] = math.ceil(tonumber(ARGV[2]) * tonumber(ARGV[1]) / 40)
end
values[#values + 1] = '*'
values[#values + 1] = cmsgpack.pack(sum)
values[#values + 1] = '*e'
values[#values + 1] = cmsgpack.pack({ tonumber(ARGV[2]), 3, 3, 0 })
flush()
redis.call('EXPIRE', KEYS[1], ARGV[3])
return redis.call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', 0)
