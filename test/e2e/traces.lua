-- Finds what mentions one of the texts; reads every key, so it is for tests alone.
-- ARGV the texts to search for
-- The owners of ids are left out: they stay, so that no other organization gets the id of something deleted.
-- Returns one line per key that has one, in its name, its value, or a field, member or element: the key and the text.
local found, cursor = {}, '0'
local function look(key, value)
  for _, text in ipairs(ARGV) do
    if string.find(value, text, 1, true) then found[#found + 1] = key .. ' ' .. text; return end
  end
end
repeat
  local page = redis.call('SCAN', cursor, 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    if not string.find(key, '{cfg}:owners$') then
      look(key, key)
      local kind = redis.call('TYPE', key).ok
      if kind == 'string' then look(key, redis.call('GET', key))
      elseif kind == 'hash' then for _, text in ipairs(redis.call('HGETALL', key)) do look(key, text) end
      elseif kind == 'set' then for _, text in ipairs(redis.call('SMEMBERS', key)) do look(key, text) end
      elseif kind == 'zset' then for _, text in ipairs(redis.call('ZRANGE', key, 0, -1)) do look(key, text) end
      elseif kind == 'list' then for _, text in ipairs(redis.call('LRANGE', key, 0, -1)) do look(key, text) end
      end
    end
  end
until cursor == '0'
return found
