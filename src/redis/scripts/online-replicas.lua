-- Counts the replicas that follow the server of this key; one that is still being filled is none.
--
-- KEYS[1] any key of the server
--
-- Returns the number.
local _, online = string.gsub(redis.call('INFO', 'replication'), 'state=online', '')
return online
