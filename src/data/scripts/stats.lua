#!lua flags=no-writes
-- Figures of a shard for the metrics.
--
-- KEYS: see includes/shard.lua. ARGV: none.
-- Reply: {unfinished messages, retries that wait, held by workers, dead letters, id of the oldest unread message or '', entries in the outbox,
-- age of the oldest of them in ms}.
-- The oldest is looked for in at most 128 ready targets.
-- @include "includes/shard.lua"
-- @include "includes/outbox.lua"

local oldest, looked = '', 0
for _, org in ipairs(call('ZRANGE', P .. 'ready', 0, 63)) do
  for _, n in ipairs(call('ZRANGE', P .. 'ready:' .. org, 0, 127 - looked)) do
    looked = looked + 1
    local entry = redis.pcall('XRANGE', P .. 'w:' .. n, '-', '+', 'COUNT', 1)
    local id = not failed(entry) and entry[1] and entry[1][2][2]
    -- Ids begin with their time, so the smallest is the oldest.
    if id and (oldest == '' or string.sub(id, -25) < string.sub(oldest, -25)) then
      oldest = id
    end
  end
  if looked >= 128 then
    break
  end
end
return {
  tonumber(call('HGET', ctl, 'open') or '0'),
  call('ZCARD', P .. 'due'),
  call('ZCARD', P .. 'held'),
  call('XLEN', P .. 'dead'),
  oldest,
  call('XLEN', P .. 'out'),
  oldest_wait_ms() or 0,
}
