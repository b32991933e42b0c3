#!lua flags=allow-oom
-- Ends the wait of retries of targets that do not serve (failover.lua): they move on without waiting until they are due.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] cursor (begin with 0); then the targets.
-- Scheduled messages wait on.
-- Reply: {next cursor ('0' at the end, or once none of the targets has retries that wait), how many}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/retries.lua"
-- @include "includes/ring-pools.lua"
-- @include "../shard/includes/order.lua"

local wanted, touched = {}, {}
for k = 2, #ARGV do
  wanted[ARGV[k]] = call('HGET', P .. 't:' .. ARGV[k], F.target.moves_on)
end
local scan = call('ZSCAN', P .. 'due', ARGV[1], 'COUNT', 200)
local freed = 0
for k = 1, #scan[2], 2 do
  local n, id = string.match(scan[2][k], '^(%d+) (.+)$')
  local m = n and wanted[n] and call('HMGET', P .. 'm:' .. id, F.message.event, F.message.first_target, F.message.first_destination,
    F.message.has_guests, F.message.status, F.message.expires_ms)
  -- Retries at a destination that serves, but not for this route, move on if they came from another one.
  local is_retry = m and m[1] and m[5] ~= 'p'
  if is_retry and (wanted[n] == 'a' or m[2] or m[3] or m[1] == batch_marker and m[4] == '1') and retries.remove(n, id) then
    enqueue_retry(n, id, m[6])
    touched[n] = true
    freed = freed + 1
  end
end
activate_all(touched)
ring_ready()
local goes_on = false
for n, moves in pairs(wanted) do
  goes_on = goes_on or moves and waiting_retries(n) > 0
end
return { goes_on and scan[1] or '0', freed }
