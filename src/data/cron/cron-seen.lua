-- Notes jobs. Jobs that are new, or whose schedule has changed, are claimed up to now, so that no earlier slot is made up.
-- Nothing is claimed beyond the time of Redis. A slot a minute or more ahead, noted by a clock that was fast, is set back to that time.
--
-- KEYS[1] `slots`; see `cron-keys.ts`.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): now_ms by the scheduler's clock; jobs {id, revision of its schedule}.
-- Reply: per job the last slot that is claimed, negative when it was new or changed.
-- @include "../../redis/scripts/includes/json.lua"
local call = redis.call
local clock = call('TIME')
local time = clock[1] * 1000 + math.floor(clock[2] / 1000)
local seen = decoded(ARGV[1])
local now = string.format('%.0f', math.min(seen.now_ms, time))
local reply = {}
for _, job in ipairs(seen.jobs) do
  local known = call('HGET', KEYS[1], job.id)
  local slot, revision = string.match(known or '', '^(%S+) (%S+)$')
  if revision == job.revision then
    if tonumber(slot) > time + 60000 then
      slot = string.format('%.0f', time)
      call('HSET', KEYS[1], job.id, slot .. ' ' .. revision)
    end
    reply[#reply + 1] = slot
  else
    call('HSET', KEYS[1], job.id, now .. ' ' .. job.revision)
    reply[#reply + 1] = '-' .. now
  end
end
return reply
