#!lua flags=allow-oom
-- Gives a worker runs of cron jobs of organizations of its pool, in turn. A run is for the newest slot that was claimed while it waited.
--
-- KEYS[1] `ready`, [2] `waiting`, [3] `runs`, [4] `held`, [5] `ran`, [6] `bell`, [7] `take:<token>`, [8] `q:`, [9] `last`;
-- see `cron-keys.ts`.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): count: how many at most; lost_after_ms: how long after its own time a run counts as lost; mark of the pool
-- (`pool-suffix.ts`); without: organizations that get no more here.
-- Reply: {1 when there is more to take, run, run, …}. Sent again with the same token it returns the same runs.
-- @include "../tasks/includes/bounded-bell.lua"
-- @include "../../redis/scripts/includes/json.lua"
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local asked = decoded(ARGV[1])
local mark = asked.mark
local ready = KEYS[1] .. mark
local blocked = {}
for _, org in ipairs(asked.without) do
  blocked[org] = true
end
local taken = call('LRANGE', KEYS[7], 0, -1)
-- How many in a row get nothing: when all do, nothing is left to give.
local passed = 0
while #taken < asked.count and passed < call('LLEN', ready) do
  local org = call('LPOP', ready)
  if blocked[org] then
    call('RPUSH', ready, org)
    passed = passed + 1
  else
    passed = 0
    local run = call('LPOP', KEYS[8] .. org)
    if call('EXISTS', KEYS[8] .. org) == 1 then
      call('RPUSH', ready, org)
    end
    if run then
      local id, job, of, slot, timeout = string.match(run, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
      local last = call('HGET', KEYS[9], job)
      if last and tonumber(last) > tonumber(slot) then
        run = table.concat({ id, job, of, last, timeout }, ' ')
      end
      call('HDEL', KEYS[2], job)
      call('HSET', KEYS[3], id, run)
      call('ZADD', KEYS[4], now + tonumber(timeout) + asked.lost_after_ms, id)
      call('HSET', KEYS[5], job, string.format('%.0f', now))
      call('RPUSH', KEYS[7], run)
      call('PEXPIRE', KEYS[7], 60000)
      taken[#taken + 1] = run
    end
  end
end
local more = false
-- An organization is in `ready` once: one more than get nothing shows whether another is there.
local waiting = call('LRANGE', ready, 0, #asked.without)
for _, org in ipairs(waiting) do
  more = more or not blocked[org]
end
-- Also for what this worker may not take: another one may.
if #waiting > 0 then
  ring(KEYS[6] .. mark)
end
table.insert(taken, 1, more and 1 or 0)
return taken
