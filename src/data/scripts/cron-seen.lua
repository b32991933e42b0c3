-- Takes note of jobs: those that are new, or whose schedule has changed, are claimed up to now, so that no slot of before is made up.
--
-- KEYS[1] `slots`; see `cron-keys.ts`.
-- ARGV[1] now in ms by the scheduler's clock, then per job: [1] job, [2] revision of its schedule.
-- Reply: per job the last slot that is claimed, negative when it was new or changed.
local call = redis.call
local reply = {}
for i = 2, #ARGV, 2 do
  local known = call('HGET', KEYS[1], ARGV[i])
  local slot, revision = string.match(known or '', '^(%S+) (%S+)$')
  if revision == ARGV[i + 1] then
    reply[#reply + 1] = slot
  else
    call('HSET', KEYS[1], ARGV[i], ARGV[1] .. ' ' .. ARGV[i + 1])
    reply[#reply + 1] = '-' .. ARGV[1]
  end
end
return reply
