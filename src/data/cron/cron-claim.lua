-- Claims slots of jobs and queues their runs for the workers. Each slot is claimed once, also when several schedulers try. A job whose earlier run still waits
-- gets no second one: that run takes the newer slot (cron-take.lua). A slot more than two seconds ahead of Redis is not claimed, so a scheduler whose clock is
-- fast cannot claim the future.
--
-- KEYS[1] `slots`, [2] `last`, [3] `waiting`, [4] `ready`, [5] `bell`, [6] `q:`, what the keys of the queues begin with, [7] `pools`; see
-- `cron-keys.ts`.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): claims {job, org, slot_ms, revision of the schedule that it is of, run: id of the run, text of the run}.
-- Reply: per job 1 when the run was queued, 0 when the slot is claimed or has not come, the schedule is another by now, or a run waits.
-- @include "../tasks/includes/bounded-bell.lua"
-- @include "../../redis/scripts/includes/json.lua"
local call = redis.call
local clock = call('TIME')
local latest = clock[1] * 1000 + math.floor(clock[2] / 1000) + 2000
local reply = {}
local queued = {}
local given = decoded(ARGV[1])
for _, claim in ipairs(given.claims) do
  local job, org, slot = claim.job, claim.org, claim.slot_ms
  local known, revision = string.match(call('HGET', KEYS[1], job) or '', '^(%S+) (%S+)$')
  local done = 0
  if revision == claim.revision and slot > tonumber(known) and slot <= latest then
    local text = string.format('%.0f', slot)
    call('HSET', KEYS[1], job, text .. ' ' .. revision)
    call('HSET', KEYS[2], job, text)
    if call('HSETNX', KEYS[3], job, claim.run) == 1 then
      local mark = call('HGET', KEYS[7], org) or ''
      if call('RPUSH', KEYS[6] .. org, claim.text) == 1 then
        call('RPUSH', KEYS[4] .. mark, org)
      end
      queued[mark] = (queued[mark] or 0) + 1
      done = 1
    end
  end
  reply[#reply + 1] = done
end
for mark, count in pairs(queued) do
  ring(KEYS[5] .. mark, count)
end
return reply
