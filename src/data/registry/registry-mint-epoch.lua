-- Mints the next leader epoch and makes the store marker when there is none. A store without an epoch is new: it gets the layout.
-- KEYS[1] epoch
-- KEYS[2] marker
-- KEYS[3] layout
-- ARGV[1] marker to write when there is none
-- ARGV[2] layout of a store that has nothing yet
-- Returns the epoch. The first epoch of a store is the Redis time in milliseconds, so that after a loss of all data no new
-- epoch repeats an old one.
local epoch = redis.call('INCR', KEYS[1])
if epoch == 1 then
  local time = redis.call('TIME')
  epoch = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  redis.call('SET', KEYS[1], string.format('%.0f', epoch))
  redis.call('SET', KEYS[3], ARGV[2], 'NX')
end
redis.call('SET', KEYS[2], ARGV[1], 'NX')
return epoch
