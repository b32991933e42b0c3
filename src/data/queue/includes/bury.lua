-- @include "expiry.lua"
-- @include "finish.lua"
-- @include "status-counts.lua"
-- @include "../../shard/includes/batch.lua"
-- @include "../../shard/includes/shard.lua"

-- @created-on-first-use

-- Sends an unfinished message that nobody holds to the dead letters; of a batch each member. `error_type` as in finish.
local function bury(id, org, reason, error_type)
  if call('HGET', P .. 'm:' .. id, F.message.event) == batch_marker then
    batch_end(id, 'q', reason)
    return
  end
  local m = call('HMGET', P .. 'm:' .. id, F.message.target, F.message.status, F.message.event, F.message.expires_ms)
  local n = m[1] or ''
  burying[id] = { org, m[2] }
  call('HDEL', P .. 'm:' .. id, F.message.due_ms)
  if m[4] then
    expiry.forget(id)
  end
  call('HSET', P .. 'm:' .. id, finish(id, m[3], org, n, call('HGET', P .. 't:' .. n, F.target.destination) or '', 'q', reason, error_type))
  count_status(org, m[2], 'q')
  call('HINCRBY', ctl, F.control.open_messages, -1)
end
