#!lua flags=allow-oom
-- Puts other windows of a shared limiter in force, or forgets it.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] limiter, [2] revision of its windows, [3] these (shared-limiter.lua); [2] and [3] absent: it is gone.
-- Reply: {hints}.
-- @include "../shard/includes/shard.lua"
-- @include "includes/shared-windows.lua"
-- @include "../shard/includes/hints.lua"
-- @include "includes/waiting.lua"

local limiter = ARGV[1]
if not ARGV[2] then
  call('DEL', P .. 'l:' .. limiter, P .. 'used:' .. limiter)
  if call('EXISTS', P .. 'wait:' .. limiter) == 1 then
    waiting.add(limiter, nil, now)
  end
elseif call('EXISTS', P .. 'l:' .. limiter) == 1 then
  set_windows(limiter, ARGV[2], ARGV[3])
end
hints.due = next_due_ms()
return { hints.reply() }
