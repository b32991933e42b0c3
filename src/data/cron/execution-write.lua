#!lua flags=allow-oom
-- Writes an execution of a cron job, and lets the oldest go. What has ended is not written again.
--
-- KEYS[1] `order`, [2] `entries`, [3] `bodies`, [4] `gone`; see `cron-keys.ts`.
-- ARGV[1] execution, [2] its start in ms, [3] `1` when it has ended, else `0`, [4] the entry, [5] response body, or nothing,
-- [6] most executions, [7] most bytes of bodies, [8] start of the oldest that is kept (the newest stays all the same), [9] how long the
-- history of a job lives that runs no more, in ms.
-- Reply: 1, or 0 when it had ended before or its job is deleted.
local call = redis.call
if call('EXISTS', KEYS[4]) == 1 then
  return 0
end
local known = call('HGET', KEYS[2], ARGV[1])
if known and string.sub(known, 1, 1) == '1' then
  return 0
end
call('HSET', KEYS[2], ARGV[1], ARGV[3] .. ARGV[4])
call('ZADD', KEYS[1], ARGV[2], ARGV[1])
if ARGV[5] ~= '' then
  call('HSET', KEYS[3], ARGV[1], ARGV[5])
end
local most = tonumber(ARGV[6])
local old = call('ZRANGE', KEYS[1], 0, -most - 1)
for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[8], 'LIMIT', 0, 100)) do
  if call('ZCARD', KEYS[1]) > 1 and id ~= ARGV[1] then
    old[#old + 1] = id
  end
end
for _, id in ipairs(old) do
  call('ZREM', KEYS[1], id)
  call('HDEL', KEYS[2], id)
  call('HDEL', KEYS[3], id)
end
local left = tonumber(ARGV[7])
for _, id in ipairs(call('ZRANGE', KEYS[1], 0, -1, 'REV')) do
  left = left - #(call('HGET', KEYS[3], id) or '')
  if left < 0 then
    call('HDEL', KEYS[3], id)
  end
end
for i = 1, 3 do
  call('PEXPIRE', KEYS[i], ARGV[9])
end
return 1
