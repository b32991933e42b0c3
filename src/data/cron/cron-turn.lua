#!lua flags=allow-oom
-- Takes or keeps the turn of one scheduler, and returns the runs that are lost.
--
-- KEYS[1] `turn`, [2] `held`, [3] `runs`; see `cron-keys.ts`.
-- ARGV[1] scheduler, [2] length of a turn in ms.
-- Reply: {1 when it is its turn, time of Redis in ms, text of a lost run, …}.
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local holder = call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return { 0, now }
end
call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local reply = { 1, now }
for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)) do
  local run = call('HGET', KEYS[3], id)
  if run then
    reply[#reply + 1] = run
  else
    call('ZREM', KEYS[2], id)
  end
end
return reply
