#!lua flags=allow-oom
-- Stores the pool whose workers serve organizations. Workers of another one finish what they hold.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] mark of the pool (../shard/includes/pools.lua), then organizations.
-- Reply: none.
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/account.lua"
-- @include "../shard/includes/pools.lua"
-- @include "../queue/includes/pool-changes.lua"

local mark = ARGV[1]

-- Attempts at slow targets count where the organization is; those of its webhooks and alerts, which change with it, are among them.
local function move_slow(org, old)
  local held = call('ZRANGE', P .. 'slow:' .. account_of(org), 0, -1, 'WITHSCORES')
  for k = 1, #held, 2 do
    call('ZREM', P .. 'slow' .. old, held[k])
    call('ZADD', P .. 'slow' .. mark, held[k + 1], held[k])
  end
end

for k = 2, #ARGV do
  local org = ARGV[k]
  local old = mark_of(org)
  if old ~= mark then
    set_pool(org, mark)
    move_slow(org, old)
    -- Its finish tag is by the clock of the old pool.
    call('HDEL', P .. 'o:' .. org, F.organization.finish_tag)
    to_own_pool(org, old)
  end
end
