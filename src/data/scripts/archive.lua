#!lua flags=allow-oom
-- Archives a dead letter: it stays as a failed message, for as long as finished ones stay.
--
-- KEYS: see includes/shard.lua. ARGV[1] message.
-- Reply: 1 archived, now or before; 0 when it is no dead letter.
-- @include "includes/shard.lua"
-- @include "includes/index.lua"
-- @include "includes/outbox.lua"
-- @include "includes/dead-letters.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/remove.lua"

local id = ARGV[1]
local key = P .. 'm:' .. id
local m = call('HMGET', key, 's', 'c', 't', 'q')
if m[1] ~= 'q' then
  return m[1] == 'x' and 1 or 0
end
local t = call('HMGET', P .. 't:' .. m[3], 'o', 'r', 'd')
remove_dead_letter(id, m[2], t[1], t[2], t[3], m[4])
local stamp = monotonic_ms() .. '-' .. counter()
call('XADD', P .. 'fin', stamp, 'i', id)
call('HSET', key, 's', 'x', 'c', stamp, 'dc', m[2])
if t[1] then
  count_status(t[1], 'q', 'x')
  write_status_counts()
end
return 1
