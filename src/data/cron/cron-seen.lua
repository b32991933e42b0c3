-- Notes jobs. Jobs that are new, or whose schedule has changed, are claimed up to now, so that no earlier slot is made up.
-- Nothing is claimed beyond the time of Redis. A slot a minute or more ahead, noted by a clock that was fast, is set back to that time.
--
-- KEYS[1] `slots`; see `cron-keys.ts`.
-- ARGV[1] now in ms by the scheduler's clock, then per job: [1] job, [2] revision of its schedule.
-- Reply: per job the last slot that is claimed, negative when it was new or changed.
local call = redis.call
local clock = call('TIME')
local time = clock[1] * 1000 + math.floor(clock[2] / 1000)
local now = string.format('%.0f', math.min(tonumber(ARGV[1]), time))
local reply = {}
for i = 2, #ARGV, 2 do
  local known = call('HGET', KEYS[1], ARGV[i])
  local slot, revision = string.match(known or '', '^(%S+) (%S+)$')
  if revision == ARGV[i + 1] then
    if tonumber(slot) > time + 60000 then
      slot = string.format('%.0f', time)
      call('HSET', KEYS[1], ARGV[i], slot .. ' ' .. revision)
    end
    reply[#reply + 1] = slot
  else
    call('HSET', KEYS[1], ARGV[i], now .. ' ' .. ARGV[i + 1])
    reply[#reply + 1] = '-' .. now
  end
end
return reply
