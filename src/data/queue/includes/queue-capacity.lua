-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"

-- How many more messages the queue of a destination takes; false: any number.
local rooms = {}
local function queue_capacity(destination)
  if rooms[destination] == nil then
    local l = call('HMGET', P .. 'l:' .. destination, F.limiter.max_queued, F.limiter.targets)
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

local function is_queue_full(destination)
  local room = queue_capacity(destination)
  return room and room <= 0
end

local function use_room(destination)
  local room = rooms[destination]
  rooms[destination] = room and room - 1
end
