-- @include "../../shard/includes/shard.lua"
-- @include "waiting.lua"

-- Sets the windows of a shared limiter (shared-limiter.lua), unless those of a later revision are there, and lets those that wait look anew.
local function set_windows(limiter, revision, windows)
  local l = call('HMGET', P .. 'l:' .. limiter, F.limiter.windows_revision, F.limiter.windows)
  if tonumber(l[1] or '0') > tonumber(revision) then
    return
  end
  call('HSET', P .. 'l:' .. limiter, F.limiter.windows_revision, revision, F.limiter.windows, windows)
  if l[2] ~= windows and call('EXISTS', P .. 'wait:' .. limiter) == 1 then
    waiting.add(limiter, nil, now)
  end
end
