#!lua flags=allow-oom
-- Removes an organization from the shard: first its queues, then its events with their messages (at most ARGV[2] events per
-- call), at last what is left of its names, counters and targets.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] organization, [2] how many events or targets at most.
-- Reply: 1 when there is more to do.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../queue/includes/unfinished.lua"
-- @include "../queue/includes/remove.lua"
-- @include "../shard/includes/event-messages.lua"
-- @include "../queue/includes/statistics.lua"
-- @include "../webhooks/includes/some-fields.lua"
-- @include "../shard/includes/pools.lua"
-- @include "../queue/includes/retries.lua"
-- @include "../queue/includes/pool-changes.lua"
-- @include "../queue/includes/account.lua"
-- @include "../queue/includes/unfinished-changes.lua"

local org, budget = ARGV[1], tonumber(ARGV[2])
local max_messages = 200
local names = P .. 'tn:' .. org

-- Queues: a settle that comes later finds no stream and changes nothing.
for _, n in ipairs(call('ZRANGE', P .. 'ready:' .. org, 0, budget - 1)) do
  deactivate(n, org)
end

-- Events, and copies of those of other shards.
local events = {}
local function gather(key)
  local kind = call('TYPE', key).ok
  if kind == 'zset' then
    for _, member in ipairs(call('ZRANGE', key, 0, budget - 1)) do
      events[#events + 1] = string.sub(member, 14)
    end
  elseif kind == 'stream' then
    for _, entry in ipairs(call('XRANGE', key, '-', '+', 'COUNT', budget)) do
      events[#events + 1] = entry[2][2]
    end
  end
end
gather(P .. 'i:ev:' .. org)
if #events == 0 then
  gather(P .. 'i:cp:' .. org)
end
-- An event may have more messages than one call removes.
local removed = 0
for _, event in ipairs(events) do
  local head = call('GETRANGE', P .. 'e:' .. event, 0, 255)
  local is_whole = true
  for _, id in ipairs(messages_of(event, head)) do
    if removed >= max_messages then
      is_whole = false
      break
    end
    if call('EXISTS', P .. 'm:' .. id) == 1 then
      remove_message(id)
      removed = removed + 1
    end
  end
  if not is_whole then
    break
  end
  remove_event(event)
end
if #events > 0 then
  write_unfinished()
  return 1
end
-- Messages that are not listed with their events.
local messages = P .. 'i:' .. org
local kind = call('TYPE', messages).ok
if kind == 'zset' then
  local popped = call('ZPOPMIN', messages, budget)
  for k = 1, #popped, 2 do
    events[#events + 1] = string.sub(popped[k], 14)
  end
elseif kind == 'stream' then
  for _, entry in ipairs(call('XRANGE', messages, '-', '+', 'COUNT', max_messages)) do
    events[#events + 1] = entry[2][2]
    call('XDEL', messages, entry[1])
  end
end
for _, id in ipairs(events) do
  remove_message(id)
end
if #events > 0 then
  write_unfinished()
  return 1
end

local targets = some_fields(names, budget)
for k = 1, #targets, 2 do
  local n = targets[k + 1]
  local t = call('HMGET', P .. 't:' .. n, F.target.destination, F.target.blocked_by, F.target.shared_limiter)
  if t[2] and t[2] ~= 'cap' and t[2] ~= '!' then
    call('ZREM', P .. 'wait:' .. t[2], n)
    -- Targets of others may wait for the same.
    if call('EXISTS', P .. 'wait:' .. t[2]) == 0 then
      call('ZREM', P .. 'waiting', t[2])
    end
  end
  call('ZREM', P .. 'waiting', '!' .. n)
  call('SREM', P .. 'broken', n)
  call('HDEL', P .. 'retries', n)
  call('HDEL', P .. 'scheduled', n)
  for _, batch in ipairs(call('SMEMBERS', P .. 'bs:' .. n)) do
    retries.remove(n, batch)
    call('LREM', P .. 'ended', 0, batch)
    call('DEL', P .. 'm:' .. batch, P .. 'a:' .. batch, P .. 'b:' .. batch, P .. 'bu:' .. batch)
  end
  call('DEL', P .. 'w:' .. n, P .. 'w:' .. retry_lane(n), P .. 't:' .. n, P .. 'probe:' .. n, P .. 'bs:' .. n, P .. 'ra:' .. n)
  if t[1] and t[1] ~= '' then
    call('DEL', P .. 'l:' .. t[1], P .. 'rate:' .. t[1], P .. 'lease:' .. t[1], P .. 'wait:' .. t[1])
  end
  if t[3] then
    call('DEL', P .. 'l:' .. t[3], P .. 'used:' .. t[3], P .. 'wait:' .. t[3])
  end
  call('SREM', P .. 'paused', n)
  call('SREM', P .. 'ordered', n)
  call('HDEL', names, targets[k])
end
if call('EXISTS', names) == 1 then
  return 1
end
call('DEL', P .. 'waiting:' .. account_of(org))
call('ZREM', P .. 'turns:waiting', account_of(org))
for _, route in ipairs(call('SMEMBERS', P .. 'alr:' .. org)) do
  for _, field in ipairs(call('HKEYS', P .. 'al:' .. route)) do
    local channel = string.match(field, '^i:(.+)$')
    if channel then
      call('SREM', P .. 'incidents', channel .. ' ' .. route)
    end
  end
  call('DEL', P .. 'al:' .. route)
  call('ZREM', P .. 'alerts', route)
end
call('DEL', P .. 'alr:' .. org)
call('ZREM', P .. 'ready' .. mark_of(org), org)
set_pool(org, '')
call('DEL', P .. 'ready:' .. org, P .. 'slow:' .. org, P .. 'o:' .. org, P .. 'k:' .. org, P .. 'ms:' .. org, P .. 'i:' .. org, P .. 'i:dead:' .. org, P .. 'i:bad:' .. org, P .. 'i:pk:' .. org, P .. 'i:batch:' .. org, P .. 'q:' .. org, P .. 'i:ev:' .. org,
  P .. 'i:cp:' .. org, P .. 'oe:' .. org)
remove_statistics(org)
forget_account(org)
-- Forgets its archive, which belongs to the organization itself.
call('HDEL', P .. 'arc', org)
call('ZREM', P .. 'ah', org)
call('ZREM', P .. 'az', org)
call('SREM', P .. 'arw', org)
call('DEL', P .. 'fin:' .. org, P .. 'ar:' .. org)
return 0
