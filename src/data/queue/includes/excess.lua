-- @include "failover.lua"
-- @include "lanes.lua"
-- @include "queue-capacity.lua"
-- @include "../../shard/includes/target.lua"

-- Most messages that one script checks.
local excess_per_script = 200

-- Moves the newest messages of target n that exceed the queue of its destination to failover destinations that are free. Those without one stay, and so do
-- those that a worker holds. Returns whether there may be more that move.
local function move_excess(n, destination, failover_targets)
  local room = queue_capacity(destination)
  if not room or room >= 0 then
    return false
  end
  local entries = newest_unread(n, math.min(-room, excess_per_script))
  local gone = 0
  for k = #entries, 1, -1 do
    local entry, id = entries[k][1], entries[k][2][2]
    local m = failover.moves_of(id)
    local place = m.event and failover.candidate(m, failover_targets, false)
    if place then
      failover.move_out(n, entries[k], m, n, place, 'queue_limit_exceeded')
    elseif not m.event then
      remove_entry(n, entry)
    end
    gone = gone + ((place or not m.event) and 1 or 0)
  end
  remove_drained(n)
  ring_woken()
  return gone > 0 and gone < -room
end
