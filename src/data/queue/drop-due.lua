#!lua flags=allow-oom
-- Sends retries of targets whose route or destination is gone away as drop.lua does, without waiting until they are due.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): cursor (begin with 0); targets {number, reason, way_out: the failover destinations as there}.
-- Reply: {hints, next cursor ('0' at the end), how many became dead letters}. A message that an error keeps from leaving waits on; the others leave.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/retries.lua"
-- @include "includes/leave.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/hints.lua"
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/has-left.lua"
-- @include "../shard/includes/apart.lua"

local reasons, ways_out = {}, {}
local gone = decoded(ARGV[1])
for _, target in ipairs(gone.targets) do
  local n = target.number
  reasons[n] = target.reason
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.route, F.target.in_order)
  ways_out[n] = t[1] and not t[3] and failover_of_names(t[1], t[2], target.way_out)
end
local scan = call('ZSCAN', P .. 'due', gone.cursor, 'COUNT', 200)
local dropped = 0
local function drop_retry(n, id)
  local org = call('HGET', P .. 't:' .. n, F.target.organization)
  if org and retries.remove(n, id) and leave(id, n, org, reasons[n], ways_out[n]) then
    dropped = dropped + 1
  end
end
local function put_back(n, id, due)
  if not has_left(id) then
    retries.restore(n, id, due)
  end
end
for k = 1, #scan[2], 2 do
  local n, id = string.match(scan[2][k], '^(%d+) (.+)$')
  if n and reasons[n] then
    apart.run(drop_retry, put_back, n, id, scan[2][k + 1])
  end
end
retries.write()
counters.write()
write_status_counts()
write_unfinished()
ring_woken()
return apart.reply({ hints.reply(), scan[1], dropped })
