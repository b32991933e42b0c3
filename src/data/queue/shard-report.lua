#!lua flags=allow-oom
-- Applies a change that another shard reports of a record whose home this one is.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): kind `r`: the message that had moved is gone; `g`: the copy of the event is gone; `u`: the message has
-- moved on; `n`: the event has one more message there. id: key of the message or event; shard: the one that reports, for u where the message is now; moves: for u
-- how often it has moved; message: for n.
-- Reply: 1, or 0 when it was applied before.
-- @include "../shard/includes/shard.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/remove.lua"
-- @include "includes/remote-holds.lua"
-- @include "../../redis/scripts/includes/json.lua"

local news = decoded(ARGV[1])
local what, id, shard = news.kind, news.id, integer(news.shard)
if what == 'n' then
  local known = ' ' .. (call('GET', P .. 'x:' .. id) or '') .. ' '
  if call('EXISTS', P .. 'e:' .. id) == 0 or string.find(known, ' ' .. news.message .. ' ', 1, true) then
    return 0
  end
  call('APPEND', P .. 'x:' .. id, ' ' .. news.message)
  return 1
end
if what == 'g' then
  local was_there = far_release(id, shard)
  write_unfinished()
  return was_there and 1 or 0
end
local m = call('HMGET', P .. 'm:' .. id, F.message.status, F.message.shard, F.message.moves)
if m[1] ~= 'm' then
  return 0
end
if what == 'u' then
  if tonumber(m[3]) >= news.moves then
    return 0
  end
  call('HSET', P .. 'm:' .. id, F.message.shard, shard, F.message.moves, integer(news.moves))
elseif m[2] == shard then
  remove_message(id)
  write_status_counts()
  write_unfinished()
else
  return 0
end
return 1
