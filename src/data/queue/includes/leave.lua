-- @include "failover.lua"
-- @include "intern.lua"
-- @include "bury.lua"

-- Ends the stay of messages at a target whose route or destination is gone.

-- The failover targets, as in F.target.failover_targets, of names after `<`; nil without that.
local function failover_of_names(org, route, names)
  if string.sub(names, 1, 1) ~= '<' then
    return nil
  end
  local targets = {}
  for name in string.gmatch(string.sub(names, 2), '%S+') do
    targets[#targets + 1] = string.find(name, '/', 1, true) and name or intern(org, route, name)
  end
  return table.concat(targets, ' ')
end

-- For a message that is in no lane any more. Returns whether it is a dead letter; `fo` nil: its route is gone.
local function leave(id, n, org, reason, fo)
  local m = failover.moves_of(id)
  if not m.event then
    return false
  end
  local place = fo and (failover.next_place(m, fo) or failover.candidate(m, fo, 'open'))
  if place then
    failover.move(m, n, place, reason)
    return false
  end
  bury(id, org, reason)
  return true
end
