-- @include "finish.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "status-counts.lua"

-- Writes the end of a message into its hash when an error has cut bury short after its entry in the history: it does not end a second time. Returns whether
-- it had begun to end.
local function complete_end(id)
  if not begun_ends[id] then
    return false
  end
  call('HSET', P .. 'm:' .. id, unpack(begun_ends[id]))
  if burying[id] then
    count_status(burying[id][1], burying[id][2], 'q')
  end
  call('HINCRBY', ctl, F.control.open_messages, -1)
  return true
end
