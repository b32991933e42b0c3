-- @include "../../shard/includes/shard.lua"

-- The messages of an event that are listed with it, `x:<event>`: about the first thousand, then `*` says that there are others.
local max_listed_bytes = 27000

local function unlisted(event)
  local key = P .. 'x:' .. event
  local length = call('STRLEN', key)
  if length == 0 or call('GETRANGE', key, length - 1, length - 1) ~= '*' then
    call('APPEND', key, ' *')
  end
end

local function list_messages(event, ids)
  if call('STRLEN', P .. 'x:' .. event) < max_listed_bytes then
    call('APPEND', P .. 'x:' .. event, ' ' .. table.concat(ids, ' '))
  else
    unlisted(event)
  end
end
