#!lua flags=allow-oom
-- Says workers of which pool take the tasks of an organization. Those that wait go there.
--
-- KEYS[1] `pools`, [2] `q`, [3] `bell`, [4] `o:<org>`, [5] `t:`, what the keys of tasks begin with; see `task-kind.ts`.
-- ARGV[1] organization, [2] mark of the pool (`pool-mark.ts`).
-- Reply: none.
local call = redis.call
local org, mark = ARGV[1], ARGV[2]
local old = call('HGET', KEYS[1], org) or ''
if mark == '' then
  call('HDEL', KEYS[1], org)
else
  call('HSET', KEYS[1], org, mark)
end
for _, id in ipairs(call('ZRANGE', KEYS[4], 0, -1)) do
  -- Releases that know of no pools queue every task for workers of the default one.
  for _, wrong in ipairs({ old, '' }) do
    if wrong ~= mark and call('LREM', KEYS[2] .. wrong, 0, id) > 0 then
      call('RPUSH', KEYS[2] .. mark, id)
      if call('LLEN', KEYS[3] .. mark) < 16 then
        call('RPUSH', KEYS[3] .. mark, 1)
      end
    end
  end
end
if old ~= mark and old ~= '' then
  local queue = KEYS[2] .. old
  -- The pool may be gone, and nobody left to pass over what nobody waits for any more.
  local head = call('LINDEX', queue, 0)
  while head and call('EXISTS', KEYS[5] .. head) == 0 do
    call('LPOP', queue)
    head = call('LINDEX', queue, 0)
  end
  if not head then
    call('DEL', KEYS[3] .. old)
  end
end
