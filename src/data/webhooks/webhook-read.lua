-- Reads records by id, or an application by its external id.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] kind ap, ep or sb, then per id the id, its number, its part; or ARGV[1] ax, [2] an external id.
-- Reply: per id its row, or '' when it is not there.
-- @include "includes/webhooks.lua"

local kind = ARGV[1]
if kind == 'ax' then
  local number = call('HGET', P .. 'ax', ARGV[2])
  local record = number and call('HGET', P .. 'ap', number)
  return { record and application_row(number, record) or '' }
end
local rows = {}
for k = 2, #ARGV, 3 do
  local number, record = find(kind, ARGV[k], ARGV[k + 1], ARGV[k + 2])
  rows[#rows + 1] = number and row_of[kind](number, record) or ''
end
return rows
