-- @include "shard.lua"

-- When a message was accepted (ms); of a scheduled one that has made no attempt, for when.
local function accepted_ms(id)
  local m = call('HMGET', P .. 'm:' .. id, F.message.index_stamp, F.message.due_ms, F.message.attempts)
  return tonumber(not m[3] and m[2] or string.match(m[1] or '0', '^%d+'))
end
