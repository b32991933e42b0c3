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

-- The message of the oldest unread entry of a lane; nil: there is none.
local function first_unread(lane)
  local groups = redis.pcall('XINFO', 'GROUPS', P .. 'w:' .. lane)
  if failed(groups) then
    return nil
  end
  local last = groups[1] and groups[1][8]
  local head = call('XRANGE', P .. 'w:' .. lane, last and '(' .. last or '-', '+', 'COUNT', 1)[1]
  return head and head[2][2]
end

local function remove_entry(lane, entry)
  call('XACK', P .. 'w:' .. lane, 'g', entry)
  call('XDEL', P .. 'w:' .. lane, entry)
end
