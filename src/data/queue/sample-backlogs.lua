#!lua flags=allow-oom
-- Samples what waits at the targets of the shard, once in the five minutes of a period, for the series of the analytics.
--
-- KEYS: see ../shard/includes/shard.lua.
-- Reply: how many targets were sampled; -1: the period has its sample.
--
-- The samples of a period of statistics (includes/statistics.lua) are the hash `st:<org>:<period>:b`: field `*` of all targets, `*<application>` of those of an
-- application, and the numbers of the 100 targets at which most waits, each `<sum of the samples> <highest age of the oldest in ms>`. A sample in which nothing waits
-- adds nothing. `st::<period>:b` has in n how many samples there were.
-- The work does not grow with traffic: at most 300 targets are sampled, accounts in turn, among those with work that is ready, under way, to be tried again or
-- held back.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/target-waiting.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/statistics.lua"
-- @include "includes/time-shares.lua"

local max_targets, of_a_set, of_an_account, kept_targets = 300, 100, 200, 100
local period = integer(math.floor(now / period_levels[1].ms))
if call('HGET', ctl, F.control.sampled_period) == period then
  return -1
end
call('HSET', ctl, F.control.sampled_period, period)

-- By account the targets that were found.
local found_of, accounts, seen = {}, {}, {}
local function find(n)
  local account = n and not seen[n] and time_shares.account_of_target(n)
  if not account then
    return
  end
  seen[n] = true
  if not found_of[account] then
    found_of[account] = {}
    accounts[#accounts + 1] = account
  end
  if #found_of[account] < of_an_account then
    table.insert(found_of[account], n)
  end
end
local function find_all(numbers)
  for _, n in ipairs(numbers) do
    find(n)
  end
end
-- How many of each of so many are looked for.
local function of_each(count)
  return math.min(of_an_account, math.max(5, math.floor(max_targets / math.max(1, count))))
end

-- What waits for its time, of each account (time-shares.lua). `numbers_of`: the targets behind a member.
local function find_waiting(name, numbers_of)
  local waiting_accounts = call('ZRANGE', P .. 'turns:' .. name, 0, of_a_set - 1)
  for _, account in ipairs(waiting_accounts) do
    local left = of_each(#waiting_accounts)
    for _, member in ipairs(call('ZRANGE', P .. name .. ':' .. account, 0, left - 1)) do
      local numbers = numbers_of(member, left)
      find_all(numbers)
      left = left - #numbers
      if left <= 0 then
        break
      end
    end
  end
end

for _, held in ipairs(call('ZRANGE', P .. 'held', 0, max_targets - 1)) do
  find(number_of_lane(held))
end
local marks_of_pools = call('SMEMBERS', P .. 'pools')
marks_of_pools[#marks_of_pools + 1] = ''
for _, mark in ipairs(marks_of_pools) do
  local organizations = call('ZRANGE', P .. 'ready' .. mark, 0, of_a_set - 1)
  for _, org in ipairs(organizations) do
    find_all(call('ZRANGE', P .. 'ready:' .. org, 0, of_each(#organizations) - 1))
  end
end
find_waiting('waiting', function(name, left)
  local n = string.match(name, '^!(%d+)$')
  return n and { n } or call('ZRANGE', P .. 'wait:' .. name, 0, left - 1)
end)
find_waiting('due', function(member)
  return { string.match(member, '^%d+') }
end)
find_all(call('SSCAN', P .. 'broken', 0, 'COUNT', of_a_set)[2])
find_all(call('SSCAN', P .. 'paused', 0, 'COUNT', of_a_set)[2])
local retries = call('HSCAN', P .. 'retries', 0, 'COUNT', of_a_set)[2]
for k = 1, #retries, 2 do
  find(retries[k])
end

-- Accounts in turn, so that one with very many targets leaves room for the others.
local targets = {}
for k = 1, of_an_account do
  for _, account in ipairs(accounts) do
    if #targets < max_targets then
      targets[#targets + 1] = found_of[account][k]
    end
  end
end

-- By organization: its targets, and its sums {backlog, age} by field.
local found = {}
local function add(sums, field, backlog, age)
  local sum = sums[field] or { 0, 0 }
  sums[field] = sum
  sum[1], sum[2] = sum[1] + backlog, math.max(sum[2], age)
end
for _, n in ipairs(targets) do
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.route)
  local backlog, oldest = target_waiting(n)
  if t[1] and backlog > 0 then
    local of = found[t[1]] or { targets = {}, sums = {} }
    found[t[1]] = of
    local age = oldest and math.max(0, now - oldest) or 0
    of.targets[#of.targets + 1] = { n, backlog, age }
    add(of.sums, '*', backlog, age)
    if is_for_webhooks(t[1]) then
      add(of.sums, '*' .. t[2], backlog, age)
    end
  end
end

local function write(org, sums, level)
  local key = period_key(org, level, now) .. ':b'
  local fields, values = {}, {}
  for field in pairs(sums) do
    fields[#fields + 1] = field
  end
  for k, stored in ipairs(call('HMGET', key, unpack(fields))) do
    local sum, age = string.match(stored or '0 0', '^(%d+) (%d+)$')
    local added = sums[fields[k]]
    values[2 * k - 1], values[2 * k] = fields[k], integer(sum + added[1]) .. ' ' .. integer(math.max(tonumber(age), added[2]))
  end
  call('HSET', key, unpack(values))
  call('EXPIRE', key, level.kept_s)
end

for org, of in pairs(found) do
  table.sort(of.targets, function(a, b)
    return a[2] > b[2]
  end)
  for k = 1, math.min(kept_targets, #of.targets) do
    local target = of.targets[k]
    add(of.sums, target[1], target[2], target[3])
  end
  for _, level in ipairs(period_levels) do
    write(org, of.sums, level)
  end
end
for _, level in ipairs(period_levels) do
  local key = period_key('', level, now) .. ':b'
  call('HINCRBY', key, F.backlogs.samples, 1)
  call('EXPIRE', key, level.kept_s)
end
return #targets
