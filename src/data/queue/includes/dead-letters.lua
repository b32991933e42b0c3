-- @include "../../shard/includes/shard.lua"

-- How many dead letters an organization has, `q:<org>`: fields `r <reason>` and `d <destination>`.
local function count_dead_letter(org, destination, reason, by)
  for _, field in ipairs({ 'r ' .. reason, 'd ' .. destination }) do
    if call('HINCRBY', P .. 'q:' .. org, field, by) <= 0 then
      call('HDEL', P .. 'q:' .. org, field)
    end
  end
end
