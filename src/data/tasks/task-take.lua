#!lua flags=allow-oom
-- Gives a worker the oldest task of its pool whose caller still waits, of an organization that gets more there.
--
-- KEYS[1] `q`, [2] `bell`, [3] `take:<token>`, [4] `t:`, what the keys of tasks begin with; see `task-kind.ts`.
-- ARGV[1] how many ids to read at most, [2] mark of the pool (`pool-suffix.ts`), [3…] organizations that get no more there.
-- Reply: {1 when more wait, task id, time to its deadline in ms, task}, without the latter three when there is none. Sent
-- again with the same token it returns the same task.
-- @include "includes/bounded-bell.lua"
local call = redis.call
local mark = ARGV[2]
local queue = KEYS[1] .. mark
local is_full = {}
for i = 3, #ARGV do
  is_full[ARGV[i]] = true
end
-- A task is JSON of up to a few MB that begins with its kind and its organization; see `task-caller.ts`.
local function organization_of(id)
  return string.match(call('GETRANGE', KEYS[4] .. id, 0, 511), '^{"kind":"[^"]*","org":"([^"]*)"')
end
local function answer(id, left, task)
  call('SET', KEYS[3], id, 'PX', left)
  local more = call('LLEN', queue) > 0
  if more then
    ring(KEYS[2] .. mark)
  end
  return { more and 1 or 0, id, left, task }
end

local given = call('GET', KEYS[3])
local left = given and call('PTTL', KEYS[4] .. given) or 0
if left > 0 then
  return answer(given, left, call('GET', KEYS[4] .. given))
end
for _, id in ipairs(call('LRANGE', queue, 0, ARGV[1] - 1)) do
  left = call('PTTL', KEYS[4] .. id)
  if left <= 0 then
    call('LREM', queue, 1, id)
  elseif not is_full[organization_of(id)] then
    call('LREM', queue, 1, id)
    return answer(id, left, call('GET', KEYS[4] .. id))
  end
end
return { call('LLEN', queue) > 0 and 1 or 0 }
