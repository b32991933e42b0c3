#!lua flags=allow-oom
-- Stores the pool whose workers take the tasks of an organization, and moves the tasks that wait there.
--
-- KEYS[1] `pools`, [2] `q`, [3] `bell`, [4] `o:<org>`, [5] `t:`, what the keys of tasks begin with; see `task-kind.ts`.
-- ARGV[1] organization, [2] mark of the pool (`pool-suffix.ts`).
-- Reply: none.
-- @include "includes/pool-note.lua"

for _, id in ipairs(call('ZRANGE', KEYS[4], 0, -1)) do
  move(id)
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
