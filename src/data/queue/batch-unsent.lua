#!lua flags=allow-oom
-- Notes members of a batch that are not to be written: their transform has filtered them out, or has failed, or their payload is gone.
-- What was noted before stays.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): batch; members {message, letter (finish_unsent), reason}.
-- Reply: 1, or 0 when the batch has ended.
-- @include "../shard/includes/shard.lua"
-- @include "../../redis/scripts/includes/json.lua"

local unsent = decoded(ARGV[1])
local id = unsent.batch
local state = call('HGET', P .. 'm:' .. id, F.message.status)
if not state or state == 'e' then
  return 0
end
for _, member in ipairs(unsent.members) do
  call('HSETNX', P .. 'bu:' .. id, member.message, member.letter .. member.reason)
end
return 1
