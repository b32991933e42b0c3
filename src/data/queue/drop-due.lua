#!lua flags=allow-oom
-- Sends retries of targets whose route or destination is gone away as drop.lua does, without waiting until they are due.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] cursor (begin with 0); then per target its number, the reason and the failover destinations as there.
-- Reply: {hints, next cursor ('0' at the end), how many became dead letters}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/retries.lua"
-- @include "includes/leave.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/hints.lua"

local reasons, ways_out = {}, {}
for k = 2, #ARGV, 3 do
  reasons[ARGV[k]] = ARGV[k + 1]
  local t = call('HMGET', P .. 't:' .. ARGV[k], F.target.organization, F.target.route, F.target.in_order)
  ways_out[ARGV[k]] = t[1] and not t[3] and failover_of_names(t[1], t[2], ARGV[k + 2])
end
local scan = call('ZSCAN', P .. 'due', ARGV[1], 'COUNT', 200)
local dropped = 0
for k = 1, #scan[2], 2 do
  local member = scan[2][k]
  local n, id = string.match(member, '^(%d+) (.+)$')
  local org = n and reasons[n] and call('HGET', P .. 't:' .. n, F.target.organization)
  if org and retry_over(n, id) and leave(id, n, org, reasons[n], ways_out[n]) then
    dropped = dropped + 1
  end
end
write_counts()
write_status_counts()
write_unfinished()
ring_woken()
return { hints.reply(), scan[1], dropped }
