#!lua flags=allow-oom
-- Gives out an organization whose archive has something to write. Nobody else gets it until the time is over.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] for how long (ms), then the organizations that the caller is writing already.
-- Reply: {organization, destination or ''}, or nil.
-- @include "includes/shard.lua"

local is_busy = {}
for k = 2, #ARGV do
  is_busy[ARGV[k]] = true
end
for _, org in ipairs(call('ZRANGE', P .. 'az', '-inf', now, 'BYSCORE', 'LIMIT', 0, 20)) do
  local destination = call('HGET', P .. 'arc', org)
  if not destination then
    call('ZREM', P .. 'az', org)
  elseif not is_busy[org] then
    local until_ms = whole(now + tonumber(ARGV[1]))
    call('ZADD', P .. 'az', until_ms, org)
    call('HSET', P .. 'ar:' .. org, 'u', until_ms)
    return { org, destination }
  end
end
return false
