#!lua flags=allow-oom
-- Adds the oldest tally (includes/count.lua) to the statistics of its periods.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] for how long (ms) a tally is left to grow.
-- Reply: 1 when another one is due.
-- @include "includes/shard.lua"
-- @include "includes/statistics.lua"

local due = call('ZRANGEBYSCORE', P .. 'tallies', '-inf', now - tonumber(ARGV[1]), 'LIMIT', 0, 2)
if not due[1] then
  return 0
end
local org, period, group = string.match(due[1], '^(%S+) (%d+):(%S+)$')
call('ZREM', P .. 'tallies', due[1])
if not org then
  return due[2] and 1 or 0
end
local name = period .. ':' .. group
local key = P .. 'st:' .. org .. ':t' .. name
local fields = call('HGETALL', key)
call('DEL', key)
call('SREM', P .. 'st:' .. org .. ':t', name)
local positions = { d = 1, o = 1, e = 1, f = 2, x = 2, m = 3, u = 3, s = 4 }
local changes = {}
for k = 1, #fields, 2 do
  local id, what, bucket = string.match(fields[k], '^(%S+) (%l)(%d*)$')
  if id then
    local change = changes[id] or { 0, 0, 0, 0, {} }
    changes[id] = change
    local count, position = tonumber(fields[k + 1]), positions[what]
    if position then
      change[position] = change[position] + count
    end
    if bucket ~= '' then
      bucket = tonumber(bucket)
      change[5][bucket] = (change[5][bucket] or 0) + count
    end
  end
end
write_periods(org, changes, tonumber(period) * 300000)
call('HINCRBY', ctl, 'folds', 1)
return due[2] and 1 or 0
