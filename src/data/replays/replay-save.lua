#!lua
-- Replaces the state of a replay, updates the set of its open messages and counts its messages against the month, all in one step. The version is the
-- fencing token: of two writers that have read the same version, one writes.
--
-- KEYS: see ../intake/includes/intake.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): identity; version that was read, or 0; the new state (JSON); place: `enter` adds the replay to
-- the running ones, of which at most max_running exist, `end` removes it, absent: neither; month {name (YYYY-MM), messages to count in it, negative to give
-- back, limit, absent: none, is_last_try: the caller does not try fewer of them}, absent: nothing is counted; ids of queued and of ended messages.
-- Reply: {'saved', step…}; else nothing is written: {'stale'} (another version is stored), {'many'} (enough others are running), {'quota', step…} (it would
-- exceed the month). step…: untold_step() of ../intake/includes/intake.lua.
-- @include "../intake/includes/intake.lua"
-- @include "includes/replays.lua"
-- @include "../../redis/scripts/includes/json.lua"

local change = decoded(ARGV[1])
local identity, version = change.identity, change.version
local month = change.month or { name = '', messages = 0 }

if version_of(identity) ~= version then
  return {'stale'}
end
if change.place == 'enter' and call('SCARD', running) >= change.max_running then
  return {'many'}
end
if month.limit and month.messages > 0 and tonumber(call('HGET', quota, month.name) or '0') + month.messages > month.limit then
  return {'quota', unpack(untold_step(month.name, month.limit, month.is_last_try))}
end
if month.messages ~= 0 then
  call('HINCRBY', quota, month.name, month.messages)
  expire_not_before(quota, month_kept_ms)
end
call('HSET', states, identity, integer(version + 1) .. ' ' .. change.state)
local open = open_of(identity)
for _, id in ipairs(change.queued) do
  call('SADD', open, id)
end
for _, id in ipairs(change.ended) do
  call('SREM', open, id)
end
if change.place == 'enter' then
  call('SADD', running, identity)
elseif change.place == 'end' then
  call('SREM', running, identity)
  call('DEL', open)
  call('ZADD', by_end, integer(now), identity)
  forget_old()
end
return {'saved', unpack(untold_step(month.name, month.limit, false))}
