#!lua flags=allow-oom
-- Sends what a target has queued to the dead letters, because its route or destination is gone. At most 100 messages per
-- call. What workers hold at the moment is settled by them.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] target, [2] reason.
-- Reply: {how many, 1 when there is more}.
-- @include "includes/shard.lua"
-- @include "includes/index.lua"
-- @include "includes/target.lua"
-- @include "includes/finish.lua"

local n, reason = ARGV[1], ARGV[2]
local t = call('HMGET', P .. 't:' .. n, 'o', 'b')
local org, blocked = t[1], t[2]
if not org then
  return { 0, 0 }
end
local w = P .. 'w:' .. n
local reply = redis.pcall('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', 100, 'STREAMS', w, '>')
if failed(reply) then
  if call('TYPE', w).ok ~= 'stream' then
    deactivate(n, org)
    return { 0, 0 }
  end
  call('XGROUP', 'CREATE', w, 'g', '0')
  reply = call('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', 100, 'STREAMS', w, '>')
end
local entries = reply and reply[1][2] or {}
for _, entry in ipairs(entries) do
  local id = entry[2][2]
  call('XACK', w, 'g', entry[1])
  call('XDEL', w, entry[1])
  if call('EXISTS', P .. 'm:' .. id) == 1 then
    bury(id, org, reason)
  end
end
if #entries < 100 then
  deactivate(n, org)
  call('HDEL', P .. 't:' .. n, 'p', 'b', 'g')
  call('SREM', P .. 'paused', n)
  if blocked and blocked ~= 'cap' then
    call('ZREM', P .. 'wait:' .. blocked, n)
    if call('EXISTS', P .. 'wait:' .. blocked) == 0 then
      call('ZREM', P .. 'waiting', blocked)
    end
  end
  if call('XLEN', w) == 0 then
    call('DEL', w)
  end
end
return { #entries, #entries == 100 and 1 or 0 }
