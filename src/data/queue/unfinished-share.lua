#!lua flags=allow-oom
-- Says to a shard which accounts are refused, and up to how many unfinished bytes it need not ask again (accept.lua).
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] bytes, or `-` for any number, [2] accounts that are refused, separated by spaces, [3] accounts of which no details of attempts are kept, and
-- before them the bytes above which that is so (includes/attempt-details.lua), or ''.
-- Reply: 1.
-- @include "../shard/includes/shard.lua"

call('HSET', ctl, F.control.shares_lease, ARGV[1])
if ARGV[2] == '' then
  call('HDEL', ctl, F.control.accounts_over)
else
  call('HSET', ctl, F.control.accounts_over, ARGV[2])
end
if ARGV[3] == '' then
  call('HDEL', ctl, F.control.accounts_lean)
else
  call('HSET', ctl, F.control.accounts_lean, ARGV[3])
end
return 1
