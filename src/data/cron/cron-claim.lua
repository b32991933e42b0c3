-- Claims slots of jobs and queues their runs for the workers. Each slot is claimed once, also when several schedulers try. A job whose earlier run still waits
-- gets no second one: that run takes the newer slot (cron-take.lua). A slot more than two seconds ahead of Redis is not claimed, so a scheduler whose clock is
-- fast cannot claim the future.
--
-- KEYS[1] `slots`, [2] `last`, [3] `waiting`, [4] `ready`, [5] `bell`, [6] `q:`, what the keys of the queues begin with, [7] `pools`; see
-- `cron-keys.ts`.
-- ARGV per job: [1] job, [2] organization, [3] slot, [4] revision of the schedule that it is of, [5] id of the run, [6] its text.
-- Reply: per job 1 when the run was queued, 0 when the slot is claimed or has not come, the schedule is another by now, or a run waits.
-- @include "../tasks/includes/bounded-bell.lua"
local call = redis.call
local clock = call('TIME')
local latest = clock[1] * 1000 + math.floor(clock[2] / 1000) + 2000
local reply = {}
local queued = {}
for i = 1, #ARGV, 6 do
  local job, org, slot = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local known, revision = string.match(call('HGET', KEYS[1], job) or '', '^(%S+) (%S+)$')
  local done = 0
  if revision == ARGV[i + 3] and tonumber(slot) > tonumber(known) and tonumber(slot) <= latest then
    call('HSET', KEYS[1], job, slot .. ' ' .. revision)
    call('HSET', KEYS[2], job, slot)
    if call('HSETNX', KEYS[3], job, ARGV[i + 4]) == 1 then
      local mark = call('HGET', KEYS[7], org) or ''
      if call('RPUSH', KEYS[6] .. org, ARGV[i + 5]) == 1 then
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
