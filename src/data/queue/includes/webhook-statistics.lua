-- @include "../../shard/includes/shard.lua"
-- @include "statistics.lua"

-- What the analytics of webhooks read, however many endpoints there are: sums, made where tallies are folded. In the hash of a period (statistics.lua):
--   *, *<application>   all targets here, those of an application; the same list as of a target
--   <one of these or a target>:<letter>, !<reason>   as in count.lua; the first number counts
-- `<hash of a period>:f` sorted set of targets by their failed attempts in the period, of those that have most
-- `un:<org>` hash of the same names: how many of their messages have not ended
local max_failing = 1000
-- As long as they are read: of an hour, a day and a month.
local failing_kept_s = { m = 7200, h = 93600, d = 2764800 }

local function add_change_to(sums, field, change)
  sums[field] = sums[field] or { 0, 0, 0, 0, {} }
  add_change(sums[field], change)
end

local function write_failing(org, failed, at_ms)
  for _, level in ipairs(period_levels) do
    local key = period_key(org, level, at_ms) .. ':f'
    local is_new = call('EXISTS', key) == 0
    for n, count in pairs(failed) do
      call('ZADD', key, 'INCR', count, n)
    end
    local excess = call('ZCARD', key) - max_failing
    if excess > 0 then
      call('ZPOPMIN', key, excess)
    end
    if is_new then
      call('EXPIRE', key, failing_kept_s[level.name])
    end
  end
end

local function write_unfinished(org, unfinished)
  local key = P .. 'un:' .. org
  for name, by in pairs(unfinished) do
    if by ~= 0 and call('HINCRBY', key, name, by) == 0 then
      call('HDEL', key, name)
    end
  end
end

-- The changes of a tally with their sums; writes what is not in the hashes of periods.
local function with_webhook_sums(org, changes, at_ms)
  local sums, failed, unfinished, names = {}, {}, {}, {}
  for field, change in pairs(changes) do
    local n, detail = string.match(field, '^(%d+)(.*)$')
    if n then
      if not names[n] then
        local application = call('HGET', P .. 't:' .. n, F.target.route)
        names[n] = { n, '*', application and '*' .. application or nil }
      end
      local is_uncounted_end = detail == '!filtered' or detail == '!cancelled'
      local ended = detail == '' and change[1] + change[2] or is_uncounted_end and change[1] or 0
      local more = detail == '' and change[3] - ended or -ended
      for k, name in ipairs(names[n]) do
        unfinished[name] = (unfinished[name] or 0) + more
        if k > 1 then
          add_change_to(sums, name .. detail, change)
        end
      end
      if string.byte(detail) == 58 then
        failed[n] = (failed[n] or 0) + change[1]
      end
    end
  end
  for field, sum in pairs(sums) do
    changes[field] = sum
  end
  if next(failed) then
    write_failing(org, failed, at_ms)
  end
  write_unfinished(org, unfinished)
  return changes
end
