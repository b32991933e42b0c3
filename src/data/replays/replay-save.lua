#!lua
-- Replaces the state of a replay, updates the set of its open messages and counts its messages against the month, all in one step. The version is the
-- fencing token: of two writers that have read the same version, one writes.
--
-- KEYS: see ../intake/includes/intake.lua.
-- ARGV[1] identity; [2] the version that was read, or 0; [3] the new state (JSON); [4] `enter <maximum>` adds the replay to the running ones, `end` removes
-- it, '' does neither; [5] month (YYYY-MM); [6] number of messages to count in it, negative to give back; [7] quota of the month, or '' for none;
-- [8] `last` when the caller does not try fewer of them, else ''; [9] number of queued messages. Their ids follow, then the ids of ended messages.
-- Reply: {'saved', step…}; else nothing is written: {'stale'} (another version is stored), {'many'} (enough others are running), {'quota', step…} (it would
-- exceed the month). step…: untold_step() of ../intake/includes/intake.lua.
-- @include "../intake/includes/intake.lua"
-- @include "includes/replays.lua"

local identity, version, place = ARGV[1], tonumber(ARGV[2]), ARGV[4]
local month, messages, limit = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local is_last_try, queued = ARGV[8] == 'last', tonumber(ARGV[9])

if version_of(identity) ~= version then
  return {'stale'}
end
local most = tonumber(string.match(place, '^enter (%d+)$'))
if most and call('SCARD', running) >= most then
  return {'many'}
end
if limit and messages > 0 and tonumber(call('HGET', quota, month) or '0') + messages > limit then
  return {'quota', unpack(untold_step(month, limit, is_last_try))}
end
if messages ~= 0 then
  call('HINCRBY', quota, month, messages)
  expire_not_before(quota, month_kept_ms)
end
call('HSET', states, identity, whole(version + 1) .. ' ' .. ARGV[3])
local open = open_of(identity)
for k = 10, #ARGV do
  call(k <= 9 + queued and 'SADD' or 'SREM', open, ARGV[k])
end
if most then
  call('SADD', running, identity)
elseif place == 'end' then
  call('SREM', running, identity)
  call('DEL', open)
  call('ZADD', by_end, whole(now), identity)
  forget_old()
end
return {'saved', unpack(untold_step(month, limit, false))}
