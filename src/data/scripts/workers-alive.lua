-- How many workers live.
--
-- KEYS[1] `alive`, see beat.lua.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return redis.call('ZCOUNT', KEYS[1], string.format('(%.0f', now), '+inf')
