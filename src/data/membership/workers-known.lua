-- The workers that live or are yet to be forgotten, those that were seen last first, and how many of those that live run each version.
--
-- KEYS[1] `alive`, see heartbeat.lua.
-- KEYS[2] `slots`, see heartbeat.lua.
-- KEYS[3] `versions`, see heartbeat.lua.
-- ARGV[1] how many at most.
-- Reply: the time and how many there are; the id, the end of the life, the slots and the version of each, slots '' of one that is ending; each
-- version and the number of workers of any number that live. All is text; the version '' is unknown.
local call = redis.call
local clock = call('TIME')
local now = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
local versions = {}
local fields = call('HGETALL', KEYS[3])
for k = 1, #fields, 2 do
  versions[fields[k]] = fields[k + 1]
end
local found = call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'REV', 'WITHSCORES')
local workers = {}
for k = 1, #found, 2 do
  workers[#workers + 1] = found[k]
  workers[#workers + 1] = found[k + 1]
  workers[#workers + 1] = call('HGET', KEYS[2], found[k]) or ''
  workers[#workers + 1] = versions[found[k]] or ''
end
local counts = {}
for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[1], now, '+inf')) do
  local version = versions[id] or ''
  counts[version] = (counts[version] or 0) + 1
end
local living = {}
for version, count in pairs(counts) do
  living[#living + 1] = version
  living[#living + 1] = tostring(count)
end
return { now, tostring(call('ZCARD', KEYS[1])), workers, living }
