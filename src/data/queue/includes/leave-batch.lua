-- @include "../../shard/includes/shard.lua"

-- Excludes a member from the later attempts of its batch if no attempt is under way. The member ends with the batch, as a dead letter with this reason
-- (end-batches.lua). Returns the state of the batch; nil: it no longer exists.
local function leave_batch(id, batch, reason)
  local b = call('HMGET', P .. 'm:' .. batch, F.message.status, F.message.attempts)
  if b[1] and b[1] ~= 'a' and b[1] ~= 'e' then
    call('HSETNX', P .. 'bu:' .. batch, id, 'q' .. reason .. '/' .. (b[2] or '0'))
  end
  return b[1]
end
