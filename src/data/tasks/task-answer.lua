#!lua flags=allow-oom
-- Answers a task, unless its deadline has passed or it was answered before.
--
-- KEYS[1] `t:<task>`, [2] `a:<caller>`, [3] `o:<org>`; see `task-kind.ts`.
-- ARGV[1] task id, [2] the answer, [3] how long answers are kept in ms.
-- Reply: 1, or 0 when nobody waits for it.
local call = redis.call
if call('EXISTS', KEYS[1]) == 0 then
  return 0
end
call('DEL', KEYS[1])
call('ZREM', KEYS[3], ARGV[1])
call('RPUSH', KEYS[2], ARGV[2])
call('PEXPIRE', KEYS[2], ARGV[3])
return 1
