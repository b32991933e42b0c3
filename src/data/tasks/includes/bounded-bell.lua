-- Wakes workers that sleep on a list, one for each ring; more than 16 at a time would find nothing.
local max_rings = 16

local function ring(bell, times)
  for _ = 1, math.min(times or 1, max_rings - redis.call('LLEN', bell)) do
    redis.call('RPUSH', bell, 1)
  end
end
