#!lua flags=allow-oom
-- Sends retries of targets whose route or destination is gone to the dead letters, without waiting until they are due.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] cursor (begin with 0); then pairs of target and reason.
-- Reply: {next cursor ('0' at the end), how many}.
-- @include "includes/shard.lua"
-- @include "includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/finish.lua"
-- @include "includes/retries.lua"

local reasons = {}
for k = 2, #ARGV, 2 do
  reasons[ARGV[k]] = ARGV[k + 1]
end
local scan = call('ZSCAN', P .. 'due', ARGV[1], 'COUNT', 200)
local dropped = 0
for k = 1, #scan[2], 2 do
  local member = scan[2][k]
  local n, id = string.match(member, '^(%d+) (.+)$')
  local org = n and reasons[n] and call('HGET', P .. 't:' .. n, 'o')
  if org and retry_over(n, id) and call('EXISTS', P .. 'm:' .. id) == 1 then
    bury(id, org, reasons[n])
    dropped = dropped + 1
  end
end
write_counts()
write_status_counts()
write_unfinished()
return { scan[1], dropped }
