#!lua flags=allow-oom
-- Removes history older than its retention, the oldest first; unfinished messages are not in the history and stay.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] retention of finished messages in ms, [2] of dead letters in ms, [3] how many records at most, [4] memory limit in bytes
-- where Redis has none, or ''.
-- Reply: {how many were removed, 1 when there is more, thousandths of the memory limit in use or -1}.
-- @include "includes/shard.lua"
-- @include "includes/index.lua"
-- @include "includes/outbox.lua"
-- @include "includes/dead-letters.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/remove.lua"
-- @include "includes/memory.lua"

local budget = tonumber(ARGV[3])
local removed = 0
local function prune(key, retention)
  local entries = call('XRANGE', key, '-', whole(math.max(0, now - retention)), 'COUNT', budget - removed)
  for _, entry in ipairs(entries) do
    local kind, id = entry[2][1], entry[2][2]
    if kind == 'e' then
      remove_event(id)
    else
      remove_message(id)
    end
    history_remove(key, entry[1])
    removed = removed + 1
  end
end
prune(P .. 'fin', tonumber(ARGV[1]))
if removed < budget then
  prune(P .. 'dead', tonumber(ARGV[2]))
end
write_status_counts()
return { removed, removed >= budget and 1 or 0, memory_permille(ARGV[4]) or -1 }
