-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"

-- Attempts to slow targets, and to targets of which nothing is known yet, hold at most half of all slots, those of one account
-- (account.lua) at most half of that. Beyond it, up to three quarters of all slots, is the probe band: a target that has no attempt under
-- way may have one there, which is how it shows that it is not slow. One account holds at most a quarter of the probe band, and its last
-- place is only for accounts that have no slow attempt under way: an account leaves as many of its places as it has slow attempts, up to that quarter.
-- `slow<pool>` and `slow:<account>` have the handles by the end of their hold; a target that finds no room waits under the limiter `~slow<pool>` or `~slow:<account>`. Slots are those of a pool.
--
-- From here on an attempt counts as slow; so does a target of which nothing came back for as long.
local slow_ms = 1000

-- A target that turns out not to be slow waits no longer.
local function slow_release(n, blocked)
  call('ZREM', P .. 'wait:' .. blocked, n)
  call('HDEL', P .. 't:' .. n, F.target.blocked_by)
  activate(n)
end
