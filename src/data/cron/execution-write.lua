#!lua flags=allow-oom
-- Writes an execution of a cron job, and lets the oldest go. What has ended is not written again.
--
-- KEYS[1] `order`, [2] `entries`, [3] `bodies`, [4] `gone`; see `cron-keys.ts`.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): id of the execution, started_at_ms, has_ended, entry (JSON), body of the response, absent: none;
-- max_executions, max_body_bytes of all bodies; oldest_ms: start of the oldest that is kept (the newest stays all the same); kept_ms: for how long the
-- history of a job lives that runs no more.
-- Reply: 1, or 0 when it had ended before or its job is deleted.
-- @include "../../redis/scripts/includes/json.lua"

local call = redis.call
local execution = decoded(ARGV[1])
local written = execution.id
if call('EXISTS', KEYS[4]) == 1 then
  return 0
end
local known = call('HGET', KEYS[2], written)
if known and string.sub(known, 1, 1) == '1' then
  return 0
end
call('HSET', KEYS[2], written, (execution.has_ended and '1' or '0') .. execution.entry)
call('ZADD', KEYS[1], execution.started_at_ms, written)
if execution.body then
  call('HSET', KEYS[3], written, execution.body)
end
local old = call('ZRANGE', KEYS[1], 0, -execution.max_executions - 1)
for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', execution.oldest_ms), 'LIMIT', 0, 100)) do
  if call('ZCARD', KEYS[1]) > 1 and id ~= written then
    old[#old + 1] = id
  end
end
for _, id in ipairs(old) do
  call('ZREM', KEYS[1], id)
  call('HDEL', KEYS[2], id)
  call('HDEL', KEYS[3], id)
end
local left = execution.max_body_bytes
for _, id in ipairs(call('ZRANGE', KEYS[1], 0, -1, 'REV')) do
  left = left - #(call('HGET', KEYS[3], id) or '')
  if left < 0 then
    call('HDEL', KEYS[3], id)
  end
end
for i = 1, 3 do
  call('PEXPIRE', KEYS[i], execution.kept_ms)
end
return 1
