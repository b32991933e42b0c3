-- @include "../../shard/includes/shard.lua"

-- Up to `count` unread entries of a lane; nil when the stream is not there.
local function read_lane(lane, count)
  local w = P .. 'w:' .. lane
  local reply = redis.pcall('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', count, 'STREAMS', w, '>')
  if failed(reply) then
    if call('TYPE', w).ok ~= 'stream' then
      return nil
    end
    call('XGROUP', 'CREATE', w, 'g', '0')
    reply = call('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', count, 'STREAMS', w, '>')
  end
  return reply and reply[1][2] or {}
end

-- Up to `count` of the oldest unread entries of a lane, which stay unread; with `seen`, an entry, of those after it.
local function unread(lane, count, seen)
  local groups = redis.pcall('XINFO', 'GROUPS', P .. 'w:' .. lane)
  if failed(groups) then
    return {}
  end
  local last = groups[1] and groups[1][8]
  if seen and (not last or tonumber(string.match(last, '^%d+')) < tonumber(string.match(seen, '^%d+'))) then
    last = seen
  end
  return call('XRANGE', P .. 'w:' .. lane, last and '(' .. last or '-', '+', 'COUNT', count)
end

-- Up to `count` of the newest unread entries of a lane, newest first; none where the lane is no stream.
local function newest_unread(lane, count)
  local groups = redis.pcall('XINFO', 'GROUPS', P .. 'w:' .. lane)
  if failed(groups) then
    return {}
  end
  local last = groups[1] and groups[1][8]
  return call('XREVRANGE', P .. 'w:' .. lane, '+', last and '(' .. last or '-', 'COUNT', count)
end

local function remove_entry(lane, entry)
  call('XACK', P .. 'w:' .. lane, 'g', entry)
  call('XDEL', P .. 'w:' .. lane, entry)
end

-- Removes an entry of a lane once `work`, with the arguments that follow, has brought its message elsewhere. After an error the entry stays, unless the
-- function `is_elsewhere` finds that the message had arrived before it. Returns what `work` returns.
local function remove_after(lane, entry, is_elsewhere, work, ...)
  local is_done, result = pcall(work, ...)
  if is_done or is_elsewhere(entry[2][2]) then
    remove_entry(lane, entry[1])
  end
  if not is_done then
    error(result, 0)
  end
  return result
end
