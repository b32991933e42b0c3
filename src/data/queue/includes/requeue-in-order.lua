-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "work.lua"
-- @created-on-first-use

-- Puts messages that were taken and not sent, a list of ids, into the lane of retries of target n, whose messages go out in order: before those that were
-- accepted later and are there unread. Workers give back in any order what they took before order was switched on. Of these later ones a script moves up
-- to 1,000; beyond them a message is behind some that were accepted later.
local enqueue_back_in_order
do
  local moves_left = 1000

  local function accepted(id)
    local m = call('HMGET', P .. 'm:' .. id, F.message.index_stamp, F.message.expires_ms)
    local ms, number = string.match(m[1] or '', '^(%d+)-(%d+)$')
    return { id = id, expires = m[2], ms = tonumber(ms or '0'), number = tonumber(number or '0') }
  end

  local function is_earlier(one, other)
    return one.ms < other.ms or one.ms == other.ms and one.number < other.number
  end

  -- The unread entries of a lane that were accepted after a message: a list of entries, and one of their messages.
  local function later_than(first, lane)
    local w = P .. 'w:' .. lane
    local groups = redis.pcall('XINFO', 'GROUPS', w)
    local last = not failed(groups) and groups[1] and groups[1][8]
    local entries, messages = {}, {}
    for _, entry in ipairs(moves_left > 0 and call('XREVRANGE', w, '+', last and '(' .. last or '-', 'COUNT', moves_left) or {}) do
      local message = accepted(entry[2][2])
      if not is_earlier(first, message) then
        break
      end
      entries[#entries + 1], messages[#messages + 1] = entry[1], message
    end
    moves_left = moves_left - #entries
    return entries, messages
  end

  function enqueue_back_in_order(n, ids)
    local messages = {}
    for k, id in ipairs(ids) do
      messages[k] = accepted(id)
    end
    table.sort(messages, is_earlier)
    local lane = retry_lane(n)
    local entries, later = later_than(messages[1], lane)
    for _, message in ipairs(later) do
      messages[#messages + 1] = message
    end
    table.sort(messages, is_earlier)
    -- First they are in the lane once more: after an error none is missing.
    for _, message in ipairs(messages) do
      enqueue_retry(n, message.id, message.expires)
    end
    if #entries > 0 then
      call('XDEL', P .. 'w:' .. lane, unpack(entries))
    end
  end
end
