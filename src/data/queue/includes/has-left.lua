-- @include "complete-end.lua"
-- @include "failover.lua"

-- Whether a message has moved to another target, or has ended, although an error has cut that short.
local function has_left(id)
  return failover.moved[id] or complete_end(id)
end
