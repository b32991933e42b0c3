#!lua
-- Makes a new message of the same event for the first target of a message that has ended. Without allow-oom, as accept.lua.
--
-- KEYS: see includes/shard.lua; the shard is the home of the old message and of the new one.
-- ARGV[1] old message, [2] new message, [3] id of the old message.
-- Reply: 1 made, or it was before (a re-sent call); `gone`: there is no such message; `payload`: its event is gone; `full`: too much
-- memory is in use.
-- @include "includes/shard.lua"
-- @include "includes/index.lua"
-- @include "includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/ends.lua"
-- @include "includes/dead-letters.lua"
-- @include "includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/finish.lua"
-- @include "includes/new-message.lua"
-- @include "includes/event-copy.lua"
-- @include "includes/outbox.lua"

local old, new = ARGV[1], ARGV[2]
if call('EXISTS', P .. 'm:' .. new) == 1 then
  return 1
end
if call('HGET', ctl, 'full') then
  return 'full'
end
local m = call('HMGET', P .. 'm:' .. old, 'e', 't', 'o', 'x', 'y', 'sb', 'tf', 's', 'dr')
local n = m[3] or m[2]
local t = n and call('HMGET', P .. 't:' .. n, 'o', 'r', 'd') or {}
if not t[1] then
  return 'gone'
end
if call('EXISTS', P .. 'e:' .. m[1]) == 0 then
  return 'payload'
end
require_lane(t[1], t[2], t[3])
event_ref(m[1], new)
local home, home_key = home_of(m[1])
if home then
  send(home, 'n', 'e', home_key, 'm', new)
end
call('HINCRBY', ctl, 'open', 1)
local max = m[4] or '1'
if m[6] then
  max = max .. ' ' .. m[6] .. ' ' .. (m[7] or '')
end
local was_queued = new_message(m[1], t[1], n, { id = new, route = t[2], destination = t[3], max = max })
if m[8] == 'q' then
  local retries = tonumber(string.match(m[9] or '0', '^%d+'))
  call('HSET', P .. 'm:' .. old, 'dr', whole(retries + 1) .. ' ' .. whole(now))
end
call('HSET', P .. 'm:' .. new, 'rp', ARGV[3])
if m[5] then
  call('HSET', P .. 'm:' .. new, 'y', m[5])
end
write_counts()
write_status_counts()
if was_queued and activate(n) then
  ring()
end
return 1
