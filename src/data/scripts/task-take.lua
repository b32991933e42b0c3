#!lua flags=allow-oom
-- Gives a worker the oldest task whose caller still waits.
--
-- KEYS[1] `q`, [2] `bell`, [3] `take:<token>`, [4] `t:`, what the keys of tasks begin with; see `task-kind.ts`.
-- ARGV[1] the most ids to look at.
-- Reply: {1 when more wait, task id, time to its deadline in ms, task}, without the latter three when there is none. Sent
-- again with the same token it answers the same task.
local call = redis.call
local id = call('GET', KEYS[3])
for _ = 1, tonumber(ARGV[1]) do
  if not id then
    id = call('LPOP', KEYS[1])
    if not id then
      break
    end
  end
  local left = call('PTTL', KEYS[4] .. id)
  if left > 0 then
    call('SET', KEYS[3], id, 'PX', left)
    local more = call('LLEN', KEYS[1]) > 0
    if more and call('LLEN', KEYS[2]) < 16 then
      call('RPUSH', KEYS[2], 1)
    end
    return { more and 1 or 0, id, left, call('GET', KEYS[4] .. id) }
  end
  id = false
end
return { call('LLEN', KEYS[1]) > 0 and 1 or 0 }
