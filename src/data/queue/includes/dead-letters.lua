-- @include "../../shard/includes/shard.lua"
-- @created-on-first-use

-- How many dead letters an organization has, `q:<org>`: fields by F.dead_letters.
local function count_dead_letter(org, destination, reason, by)
  for _, field in ipairs({ F.dead_letters.of_reason .. reason, F.dead_letters.of_destination .. destination }) do
    if call('HINCRBY', P .. 'q:' .. org, field, by) <= 0 then
      call('HDEL', P .. 'q:' .. org, field)
    end
  end
end
