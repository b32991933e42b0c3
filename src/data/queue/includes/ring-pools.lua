-- @include "../../shard/includes/shard.lua"

-- Rings for every pool that has ready work.
local function ring_ready()
  if call('EXISTS', P .. 'ready') == 1 then
    ring(false, '')
  end
  for _, mark in ipairs(call('SMEMBERS', P .. 'pools')) do
    if call('EXISTS', P .. 'ready' .. mark) == 1 then
      ring(false, mark)
    end
  end
end

-- Rings for one worker of each pool: what there is to do any of them can.
local function ring_all()
  ring(false, '')
  for _, mark in ipairs(call('SMEMBERS', P .. 'pools')) do
    ring(false, mark)
  end
end
