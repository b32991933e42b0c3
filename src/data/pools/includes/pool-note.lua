-- @include "../../tasks/includes/bounded-bell.lua"

-- Stores the pool whose workers serve an organization. Lists of waiting work for a pool have keys that end with its mark.
--
-- KEYS[1] is `pools`, [2] and [3] what the keys of the lists and of their bells begin with. ARGV[1] organization, [2] mark of the pool (`pool-suffix.ts`).
local call = redis.call
local org, mark = ARGV[1], ARGV[2]
local old = call('HGET', KEYS[1], org) or ''
if mark == '' then
  call('HDEL', KEYS[1], org)
else
  call('HSET', KEYS[1], org, mark)
end

-- Where an element waits, it waits for workers of this pool from now on.
local function move(element)
  if old ~= mark and call('LREM', KEYS[2] .. old, 0, element) > 0 then
    call('RPUSH', KEYS[2] .. mark, element)
    ring(KEYS[3] .. mark)
  end
end
