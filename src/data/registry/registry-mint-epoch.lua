-- Mints the next leader epoch and makes the store marker when there is none. A store without an epoch is new: it gets the layout.
-- KEYS[1] epoch
-- KEYS[2] marker
-- KEYS[3] layout
-- ARGV[1] marker to write when there is none
-- ARGV[2] layout of a store that has nothing yet
-- Returns the epoch: the Redis time in milliseconds, or one more than the last epoch where that is later. So no epoch is minted twice when all data is lost,
-- or when a failover to a replica has lost the last epoch and takes longer than the clocks of the servers differ.
local epoch = redis.call('INCR', KEYS[1])
if epoch == 1 then
  redis.call('SET', KEYS[3], ARGV[2], 'NX')
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if epoch < now then
  epoch = now
  redis.call('SET', KEYS[1], string.format('%.0f', epoch))
end
redis.call('SET', KEYS[2], ARGV[1], 'NX')
return epoch
