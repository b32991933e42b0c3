#!lua flags=no-writes
-- What waits at some targets.
--
-- KEYS: see ../shard/includes/shard.lua. ARGV: numbers of targets, at most 200.
-- Reply: {messages that wait or are under way (each batch that is tried again is one), when the oldest of those in the lanes was accepted (ms) or '',
-- messages that are scheduled for a later time, which are none of the first}.
-- Retries whose time has not come are in no lane.
-- @include "../shard/includes/target-waiting.lua"

local backlog, oldest, scheduled = 0, '', 0
for _, n in ipairs(ARGV) do
  local waiting, accepted, later = target_waiting(n)
  backlog = backlog + waiting
  scheduled = scheduled + later
  if accepted and (oldest == '' or accepted < oldest) then
    oldest = accepted
  end
end
return { backlog, oldest, scheduled }
