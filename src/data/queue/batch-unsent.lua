#!lua flags=allow-oom
-- Notes members of a batch that are not to be written: their transform has filtered them out, or has failed, or their payload is gone.
-- What was noted before stays.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] batch; then per member message, letter (finish_unsent) and reason.
-- Reply: 1, or 0 when the batch has ended.
-- @include "../shard/includes/shard.lua"

local id = ARGV[1]
local state = call('HGET', P .. 'm:' .. id, F.message.status)
if not state or state == 'e' then
  return 0
end
for k = 2, #ARGV, 3 do
  call('HSETNX', P .. 'bu:' .. id, ARGV[k], ARGV[k + 1] .. ARGV[k + 2])
end
return 1
