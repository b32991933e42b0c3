#!lua flags=allow-oom
-- Adds the oldest tallies (../shard/includes/count.lua) to the statistics of their periods: at most 32, or so many that they have 50 fields.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] for how long (ms) a tally is left to grow.
-- Reply: 1 when another one is due.
-- @include "../shard/includes/shard.lua"
-- @include "includes/statistics.lua"
-- @include "includes/webhook-statistics.lua"

local max_tallies, max_fields = 32, 50
-- Counts that stand in the place of a bucket (statistics.lua).
local beyond_buckets = { [F.tally.retried] = 161, [F.tally.circuit_openings] = 162 }
local positions = {
  [F.tally.delivered] = 1,
  [F.tally.delivered_in_batch] = 1,
  [F.tally.events] = 1,
  [F.tally.failed] = 2,
  [F.tally.held_back] = 2,
  [F.tally.moved] = 3,
  [F.tally.made] = 3,
  [F.tally.unsent] = 3,
  [F.tally.duration_ms] = 4,
}

local function changes_of(fields)
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
      bucket = tonumber(bucket) or beyond_buckets[what]
      if bucket then
        change[5][bucket] = (change[5][bucket] or 0) + count
      end
    end
  end
  return changes
end

-- The sums of organizations (`*`, `*e`), by `<organization> <period>`.
local sums_of = {}

local function add_sums(org, period, changes)
  local name = org .. ' ' .. period
  local sums = sums_of[name] or {}
  sums_of[name] = sums
  local function add(field, change)
    sums[field] = sums[field] or { 0, 0, 0, 0, {} }
    add_change(sums[field], change)
  end
  for id, change in pairs(changes) do
    if string.find(id, '^%d') then
      add('*', change)
    elseif string.sub(id, 1, 4) == 'src_' then
      add('*e', { change[1], change[2], 0, 0, {} })
    else
      add('*e', { 0, 0, change[2], 0, {} })
      if change[3] > 0 then
        add('*', { 0, change[3], 0, 0, {} })
      end
    end
  end
end

local function write_sums()
  for name, sums in pairs(sums_of) do
    local org, period = string.match(name, '^(%S+) (%d+)$')
    write_periods(org, sums, tonumber(period) * 300000)
  end
end

-- Returns how much work it was, in fields.
local function fold(member)
  local org, period, group = string.match(member, '^(%S+) (%d+):(%S+)$')
  call('ZREM', P .. 'tallies', member)
  if not org then
    return 0
  end
  local name = period .. ':' .. group
  local key = P .. 'st:' .. org .. ':t' .. name
  local fields = call('HGETALL', key)
  call('DEL', key)
  call('SREM', P .. 'st:' .. org .. ':t', name)
  local changes, at_ms = changes_of(fields), tonumber(period) * 300000
  if string.byte(org) ~= 43 then
    write_periods(org, changes, at_ms)
    add_sums(org, period, changes)
    return #fields / 2
  end
  write_periods(org, with_webhook_sums(org, changes, at_ms), at_ms)
  -- With the sums there is about as much again to read, to add and to write.
  return 2 * #fields
end

local due = call('ZRANGEBYSCORE', P .. 'tallies', '-inf', now - tonumber(ARGV[1]), 'LIMIT', 0, max_tallies + 1)
local folded, fields = 0, 0
while folded < math.min(#due, max_tallies) and fields < max_fields do
  folded = folded + 1
  fields = fields + fold(due[folded])
end
write_sums()
if folded > 0 then
  call('HINCRBY', ctl, F.control.folds, folded)
end
return folded < #due and 1 or 0
