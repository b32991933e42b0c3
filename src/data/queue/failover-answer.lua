#!lua flags=allow-oom
-- Stores the answer of another shard to the question whether a failover destination takes messages again (failover.lua), and ends the question.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] entry of the outbox, [2] target whose messages ask, [3] the destination as `<shard>/<destination>`, [4] how many messages it takes.
-- Reply: 1, or 0 when another caller has ended it.
-- @include "../shard/includes/shard.lua"
-- @include "includes/outbox-entries.lua"

-- Longer than the wait of a target with an open circuit.
local answer_kept_ms = 5000

if not end_sending(ARGV[1]) then
  return 0
end
local key = P .. 'free:' .. ARGV[2] .. ' ' .. ARGV[3]
if tonumber(ARGV[4]) > 0 then
  call('SET', key, ARGV[4], 'PX', answer_kept_ms)
else
  call('DEL', key)
end
return 1
