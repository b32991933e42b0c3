-- @include "shard.lua"

-- Workers may be of several pools, and an organization is served by those of one. What each pool has for itself ends with its mark,
-- `@<pool>`, or '' of the default pool: `ready`, `bell`, `slow`, and of `ctl` F.control.slots, virtual_clock and archives_passed. F.organization.pool is the mark of
-- another pool than the default one; `pool<mark>` is the set of its organizations, `pools` the set of these marks.
local marks = {}

local function mark_of(org)
  if not marks[org] then
    marks[org] = call('HGET', P .. 'o:' .. org, F.organization.pool) or ''
  end
  return marks[org]
end
