#!lua
-- Writes what is known of a replay, with the messages that it has queued or seen end and what it counts against the month: all or nothing of it. The
-- version is the fence: of two writers that have read the same, one writes.
--
-- KEYS: see ../intake/includes/intake.lua.
-- ARGV[1] identity, [2] version that was read, 0 for none, [3] new state (JSON), [4] `enter <most>`: it becomes one of the running ones, of which there are
-- at most so many; `end`: it is one no more; or '', [5] month (YYYY-MM), [6] messages to count in it, negative ones are given back, [7] how many there may be
-- in the month, or '' for any number, [8] number of queued messages, then these, then those that have ended.
-- Reply: `saved`; else nothing is written: `stale` (another version is stored), `many` (enough others are running), `quota` (it would exceed the month).
-- @include "../intake/includes/intake.lua"
-- @include "includes/replays.lua"

local identity, version, place = ARGV[1], tonumber(ARGV[2]), ARGV[4]
local month, messages, limit = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local queued = tonumber(ARGV[8])

if version_of(identity) ~= version then
  return 'stale'
end
local most = tonumber(string.match(place, '^enter (%d+)$'))
if most and call('SCARD', running) >= most then
  return 'many'
end
if limit and messages > 0 and tonumber(call('HGET', quota, month) or '0') + messages > limit then
  return 'quota'
end
if messages ~= 0 then
  call('HINCRBY', quota, month, messages)
  expire_not_before(quota, month_kept_ms)
end
call('HSET', states, identity, whole(version + 1) .. ' ' .. ARGV[3])
local open = open_of(identity)
for k = 9, #ARGV do
  call(k <= 8 + queued and 'SADD' or 'SREM', open, ARGV[k])
end
if most then
  call('SADD', running, identity)
elseif place == 'end' then
  call('SREM', running, identity)
  call('DEL', open)
  call('ZADD', by_end, whole(now), identity)
  forget_old()
end
return 'saved'
