-- The workers that live or are yet to be forgotten, those that were seen last first.
--
-- KEYS[1] `alive`, see beat.lua.
-- KEYS[2] `slots`, see beat.lua.
-- ARGV[1] how many at most.
-- Reply: the time, how many there are, and the id, the end of the life and the slots of each, all as text; slots '' of one that is ending.
local clock = redis.call('TIME')
local found = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'REV', 'WITHSCORES')
local reply = { string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000)), tostring(redis.call('ZCARD', KEYS[1])) }
for k = 1, #found, 2 do
  reply[#reply + 1] = found[k]
  reply[#reply + 1] = found[k + 1]
  reply[#reply + 1] = redis.call('HGET', KEYS[2], found[k]) or ''
end
return reply
