-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "work.lua"

-- Puts a message that was taken and not sent into the lane of retries of target n, whose messages go out in order: before those that were accepted later
-- and stand there unread. Workers give back in any order what they took before order was switched on. `expires`: field xp of the message, if it has one.
local function enqueue_back_in_order(n, id, expires)
  local lane = retry_lane(n)
  local w = P .. 'w:' .. lane
  local function accepted(message)
    local ms, number = string.match(call('HGET', P .. 'm:' .. message, 'i') or '', '^(%d+)-(%d+)$')
    return tonumber(ms or '0'), tonumber(number or '0')
  end
  local groups = redis.pcall('XINFO', 'GROUPS', w)
  local last = not failed(groups) and groups[1] and groups[1][8]
  local first_unread = last and '(' .. last or '-'
  local ms, number = accepted(id)
  local later = {}
  while true do
    local entry = call('XREVRANGE', w, '+', first_unread, 'COUNT', 1)[1]
    local entry_ms, entry_number
    if entry then
      entry_ms, entry_number = accepted(entry[2][2])
    end
    if not entry or entry_ms < ms or entry_ms == ms and entry_number < number then
      break
    end
    call('XDEL', w, entry[1])
    later[#later + 1] = entry[2][2]
  end
  enqueue_retry(n, id, expires)
  for k = #later, 1, -1 do
    enqueue_retry(n, later[k], call('HGET', P .. 'm:' .. later[k], 'xp'))
  end
end
