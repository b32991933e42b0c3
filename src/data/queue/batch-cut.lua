#!lua flags=allow-oom
-- Cuts a batch that is too large to be written at once: the members from `first` on become a batch of their own, with the attempts of
-- this one, and that is queued. Only for the worker that holds the batch.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): worker; handle; id of the batch; last: the last member that stays; first: the first that leaves.
-- Reply: 1 when the batch ends with that member now, or 0 when the worker holds it no more, or its members are others.
-- @include "../shard/includes/shard.lua"
-- @include "../../redis/scripts/includes/json.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/ulid.lua"
-- @include "includes/ring-pools.lua"

local cutting = decoded(ARGV[1])
local worker, id = cutting.worker, cutting.id
local text = call('GET', P .. 'b:' .. id)
local m = call('HMGET', P .. 'm:' .. id, F.message.target, F.message.attempts, F.message.max_attempts, F.message.moves, F.message.left,
  F.message.has_guests)
if not text or not m[1] or call('HGET', P .. 'held:' .. worker, cutting.handle) ~= id then
  return 0
end
local cut = string.find(text, ';' .. cutting.first .. ' ', 1, true)
if not cut then
  local staying = string.find(text, cutting.last .. ' ', 1, true)
  return staying and string.find(text, ';', staying, true) == #text and 1 or 0
end

local new = batch_id(worker)
local layout = string.sub(text, 1, string.find(text, '\n', 1, true))
local members = string.sub(text, cut + 1)
local staying_members = string.sub(text, #layout + 1, cut)
local new_has_guests, has_guests = '0', '0'
for member in string.gmatch(members, '(%S+) [^;]*;') do
  local is = call('HMGET', P .. 'm:' .. member, F.message.batch, F.message.first_target, F.message.first_destination)
  if is[1] == id then
    call('HSET', P .. 'm:' .. member, F.message.batch, new)
  end
  new_has_guests = (is[2] or is[3]) and '1' or new_has_guests
  local unsent = call('HGET', P .. 'bu:' .. id, member)
  if unsent then
    call('HSET', P .. 'bu:' .. new, member, unsent)
    call('HDEL', P .. 'bu:' .. id, member)
  end
end
call('SET', P .. 'b:' .. new, layout .. members)
call('SET', P .. 'b:' .. id, layout .. staying_members)
if m[6] == '1' then
  for member in string.gmatch(staying_members, '(%S+) [^;]*;') do
    local is = call('HMGET', P .. 'm:' .. member, F.message.first_target, F.message.first_destination)
    if is[1] or is[2] then
      has_guests = '1'
      break
    end
  end
end
call('HSET', P .. 'm:' .. id, F.message.has_guests, has_guests)

local attempts = tonumber(m[2] or '0')
local fields = { F.message.event, batch_marker, F.message.target, m[1], F.message.status, attempts > 0 and 'r' or 'p', F.message.max_attempts,
  m[3] or '1', F.message.moves, m[4] or '0',
  F.message.has_guests, new_has_guests, F.message.index_stamp, integer(now) .. '-' .. counter() }
if attempts > 0 then
  fields[#fields + 1] = F.message.attempts
  fields[#fields + 1] = attempts
end
if m[5] then
  fields[#fields + 1] = F.message.left
  fields[#fields + 1] = m[5]
end
for k = 1, attempts do
  fields[#fields + 1] = k
  fields[#fields + 1] = call('HGET', P .. 'm:' .. id, k) or ''
end
call('HSET', P .. 'm:' .. new, unpack(fields))
local long = call('HGETALL', P .. 'a:' .. id)
if #long > 0 then
  call('HSET', P .. 'a:' .. new, unpack(long))
end
call('SADD', P .. 'bs:' .. m[1], new)
enqueue_retry(m[1], new)
activate(m[1])
ring_ready()
return 1
