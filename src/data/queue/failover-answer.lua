#!lua flags=allow-oom
-- Stores the answer of another shard to the question whether a failover destination takes messages again (failover.lua), and ends the question.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): entry of the outbox; target whose messages ask; the destination as `<shard>/<destination>`; room: how
-- many messages it takes.
-- Reply: 1, or 0 when another caller has ended it.
-- @include "../shard/includes/shard.lua"
-- @include "includes/outbox-entries.lua"
-- @include "../../redis/scripts/includes/json.lua"

-- Longer than the wait of a target with an open circuit.
local answer_kept_ms = 5000

local answer = decoded(ARGV[1])
if not end_sending(answer.entry) then
  return 0
end
local key = P .. 'free:' .. answer.target .. ' ' .. answer.destination
if answer.room > 0 then
  call('SET', key, integer(answer.room), 'PX', answer_kept_ms)
else
  call('DEL', key)
end
return 1
