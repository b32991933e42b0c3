-- Forgets all sessions of an organization.
-- KEYS[1]  sorted set: id of a session → when it was last seen, in milliseconds since the epoch
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  redis.call('UNLINK', KEYS[1] .. ':' .. id)
end
redis.call('UNLINK', KEYS[1])
return 0
