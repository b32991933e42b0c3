#!lua flags=allow-oom
-- Sets what dequeue must know of a target: the throttle of its limiter, or that it is paused.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] target, [2] generation of the destination, [3] 1: paused, 0: not, [4] emission interval in µs or '', [5] burst or
-- '', [6] largest concurrency or ''.
-- Reply: 1, or 0 when there is no such target.
-- @include "includes/shard.lua"
-- @include "includes/target.lua"

local n = ARGV[1]
local key = P .. 't:' .. n
local t = call('HMGET', key, 'o', 'd', 'b', 'p')
local org, destination, blocked = t[1], t[2], t[3]
if not org then
  return 0
end
local limiter = P .. 'l:' .. destination
call('HSET', key, 'g', ARGV[2])
call('DEL', limiter)
if ARGV[4] ~= '' then
  call('HSET', limiter, 'e', ARGV[4], 'u', ARGV[5])
end
if ARGV[6] ~= '' then
  call('HSET', limiter, 'c', ARGV[6])
end
if blocked == '?' .. n then
  wake(blocked, 1)
elseif call('EXISTS', P .. 'wait:' .. destination) == 1 then
  call('ZADD', P .. 'waiting', now, destination)
end
if ARGV[3] == '1' then
  call('HSET', key, 'p', '1')
  call('SADD', P .. 'paused', n)
  deactivate(n, org)
else
  call('HDEL', key, 'p')
  call('SREM', P .. 'paused', n)
  if call('EXISTS', P .. 'w:' .. n) == 1 then
    activate(n)
    ring()
  end
end
return 1
