-- Reads records by id, or an application by its external id.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): kind ap, ep or sb and ids {id, number, part}; or external_id of an application.
-- Reply: per id its row, or '' when it is not there.
-- @include "includes/webhooks.lua"
-- @include "../../redis/scripts/includes/json.lua"

local asked = decoded(ARGV[1])
local kind = asked.kind
if asked.external_id then
  local number = call('HGET', P .. 'ax', asked.external_id)
  local record = number and call('HGET', P .. 'ap', number)
  return { record and application_row(number, record) or '' }
end
local rows = {}
for _, each in ipairs(asked.ids) do
  local number, record = find(kind, each.id, integer(each.number), each.part)
  rows[#rows + 1] = number and row_of[kind](number, record) or ''
end
return rows
