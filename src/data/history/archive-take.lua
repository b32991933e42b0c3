#!lua flags=allow-oom
-- Gives out an organization of the pool whose archive has something to write. No other worker gets it until the time is over.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): hold_ms: for how long; mark of the pool (../shard/includes/pools.lua);
-- max_looks: how many organizations to read at most; busy: those that the caller is writing already.
-- Reply: {organization, destination or ''}, or nil: there is none among those that were read. The next call continues behind them.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/pools.lua"
-- @include "../../redis/scripts/includes/json.lua"

local page = 100
local is_busy = {}
local asked = decoded(ARGV[1])
for _, org in ipairs(asked.busy) do
  is_busy[org] = true
end
-- Those of a pool without workers may be many: they stay at the head.
local cursor = F.control.archives_passed .. asked.mark
local passed = tonumber(call('HGET', ctl, cursor) or '0')
local most = asked.max_looks
local is_behind = passed > 0
while most > 0 do
  local count = math.min(page, most)
  local found = call('ZRANGE', P .. 'az', '-inf', now, 'BYSCORE', 'LIMIT', passed, count)
  for _, org in ipairs(found) do
    local destination = call('HGET', P .. 'arc', org)
    if not destination then
      call('ZREM', P .. 'az', org)
    elseif is_busy[org] or mark_of(org) ~= asked.mark then
      passed = passed + 1
    else
      local until_ms = integer(now + asked.hold_ms)
      call('ZADD', P .. 'az', until_ms, org)
      call('HSET', P .. 'ar:' .. org, F.archive.lease_end_ms, until_ms)
      return { org, destination }
    end
  end
  most = most - count
  if #found < count then
    if not is_behind then
      return false
    end
    call('HDEL', ctl, cursor)
    is_behind, passed = false, 0
  end
end
call('HSET', ctl, cursor, passed)
return false
