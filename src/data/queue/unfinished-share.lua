#!lua flags=allow-oom
-- Says to a shard which accounts are refused, and up to how many unfinished bytes it need not ask again (accept.lua).
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] bytes, or `-` for any number, [2] accounts that are refused, separated by spaces.
-- Reply: 1.
-- @include "../shard/includes/shard.lua"

call('HSET', ctl, 'lease', ARGV[1])
if ARGV[2] == '' then
  call('HDEL', ctl, 'over')
else
  call('HSET', ctl, 'over', ARGV[2])
end
return 1
