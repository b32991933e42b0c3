-- The sessions of an organization, without their credentials.
-- KEYS[1]  sorted set: id of a session → when it was last seen, in milliseconds since the epoch
-- ARGV  names of the fields
-- Answers {id, value of each field…} for each session that has not ended.
local found = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local values = redis.call('HMGET', KEYS[1] .. ':' .. id, unpack(ARGV))
  if values[1] then
    table.insert(values, 1, id)
    found[#found + 1] = values
  end
end
return found
