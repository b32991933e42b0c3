-- @include "count.lua"
-- @include "finish.lua"
-- @include "index.lua"
-- @include "shard.lua"
-- @include "status-counts.lua"
-- @include "target.lua"
-- @include "work.lua"
-- @include "unfinished.lua"

-- Makes the message of an event for one target.

-- How many more messages the queue of a destination takes; false: any number.
local rooms = {}
local function queue_room(destination)
  if rooms[destination] == nil then
    local l = call('HMGET', P .. 'l:' .. destination, 'q', 't')
    local room = false
    if l[1] then
      room = tonumber(l[1])
      for n in string.gmatch(l[2], '%d+') do
        room = room - queued(n)
      end
    end
    rooms[destination] = room
  end
  return rooms[destination]
end

-- Answers whether it was queued; else it is a dead letter, because the queue of the destination is full. `target.max` is the largest
-- number of attempts; of a webhook endpoint its subscription follows, and the transform of that when it has one.
local function new_message(event, org, n, target)
  local stamp = new_stamp()
  local max, subscription, transform = target.max, nil, nil
  if string.find(max, ' ', 1, true) then
    max, subscription, transform = string.match(max, '^(%d+) (%S+) ?(%S*)$')
  end
  local fields = { 'e', event, 't', n, 's', 'p', 'x', max, 'i', stamp }
  if subscription then
    fields[11], fields[12] = 'sb', subscription
    if transform ~= '' then
      fields[13], fields[14] = 'tf', transform
    end
  end
  call('HSET', P .. 'm:' .. target.id, unpack(fields))
  count_status(org, nil, 'p')
  hold_event(event, org, 1)
  count_made(org, n)
  index_add(P .. 'i:' .. org, stamp, target.id)
  index_add(P .. 'i:' .. target.route, stamp, target.id)
  index_add(P .. 'i:' .. target.destination, stamp, target.id)
  local room = queue_room(target.destination)
  if room and room <= 0 then
    bury(target.id, org, 'queue_limit_exceeded')
    return false
  end
  enqueue(n, target.id)
  rooms[target.destination] = room and room - 1
  return true
end
