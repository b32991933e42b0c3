#!lua flags=allow-oom
-- Gives out an organization of the pool whose archive has something to write. Nobody else gets it until the time is over.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] for how long (ms), [2] mark of the pool (includes/pools.lua), then the organizations that the caller is writing already.
-- Reply: {organization, destination or ''}, or nil.
-- @include "includes/shard.lua"
-- @include "includes/pools.lua"

local page = 100
local is_busy = {}
for k = 3, #ARGV do
  is_busy[ARGV[k]] = true
end
-- Those of a pool without workers may be many.
local passed = 0
repeat
  local found = call('ZRANGE', P .. 'az', '-inf', now, 'BYSCORE', 'LIMIT', passed, page)
  for _, org in ipairs(found) do
    local destination = call('HGET', P .. 'arc', org)
    if not destination then
      call('ZREM', P .. 'az', org)
    elseif is_busy[org] or mark_of(org) ~= ARGV[2] then
      passed = passed + 1
    else
      local until_ms = whole(now + tonumber(ARGV[1]))
      call('ZADD', P .. 'az', until_ms, org)
      call('HSET', P .. 'ar:' .. org, 'u', until_ms)
      return { org, destination }
    end
  end
until #found < page
return false
