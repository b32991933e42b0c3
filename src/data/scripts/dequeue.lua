#!lua flags=allow-oom
-- Gives a worker the fairest ready work: organizations first, then their targets, each through its cap, the concurrency
-- and the rate of its limiter. What is given stands in `held` until it is settled.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] worker, [2] how many messages at most (1..64), [3] hold time in ms, after which the work is put back, [4] lifetime
-- of the worker in ms: asking for work is a sign of life.
-- Reply: {targets, jobs, events, unconfigured targets, servable work left 0/1, ms until something is due or -1}.
-- @include "includes/shard.lua"
-- @include "includes/target.lua"
-- @include "includes/limiter.lua"
-- @include "includes/jobs.lua"

local visits_limit = 32
local unconfigured_wait_ms = 2000
local fast_ms = 250

local worker = ARGV[1]
local left = tonumber(ARGV[2])
local deadline = now + tonumber(ARGV[3])
local slots = tonumber(call('HGET', ctl, 'slots') or '0')
local base_cap = math.max(8, math.ceil(slots / 10))
local unconfigured = {}
-- Arguments of the writes that the whole batch shares.
local held_until, held_by = {}, {}

-- Reads up to `count` unread entries; nil when the stream is not there.
local function read(w, count)
  local reply = redis.pcall('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', count, 'STREAMS', w, '>')
  if failed(reply) then
    if call('TYPE', w).ok ~= 'stream' then
      return nil
    end
    call('XGROUP', 'CREATE', w, 'g', '0')
    reply = call('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', count, 'STREAMS', w, '>')
  end
  return reply and reply[1][2] or {}
end

local function pending(w)
  local reply = redis.pcall('XPENDING', w, 'g')
  return failed(reply) and 0 or reply[1]
end

-- Serves one target; answers how many messages it gave.
local function serve(n, org, start, quantum)
  local key = P .. 't:' .. n
  local w = P .. 'w:' .. n
  local t = call('HMGET', key, 'r', 'd', 'g', 'a')
  local destination = t[2]
  if not destination then
    deactivate(n, org)
    return 0
  end
  if not t[3] then
    unconfigured[#unconfigured + 1] = { n, org, t[1], destination, '' }
    park(n, org, '?' .. n, now + unconfigured_wait_ms)
    return 0
  end
  local cap = base_cap
  if t[4] and tonumber(t[4]) < fast_ms then
    cap = math.max(base_cap, math.floor(slots / 2))
  end
  local room = cap - pending(w)
  if room <= 0 then
    deactivate(n, org)
    call('HSET', key, 'b', 'cap')
    return 0
  end
  local l = call('HMGET', P .. 'l:' .. destination, 'e', 'u', 'c')
  local allowed = math.min(quantum, room)
  if l[3] then
    local free, at = lease_peek(destination, tonumber(l[3]))
    if free == 0 then
      park(n, org, destination, at)
      return 0
    end
    allowed = math.min(allowed, free)
  end
  if l[1] then
    local tokens, wait_us = rate_peek(destination, tonumber(l[1]), tonumber(l[2]))
    if tokens == 0 then
      park(n, org, destination, now + math.ceil(wait_us / 1000))
      return 0
    end
    allowed = math.min(allowed, tokens)
  end

  local entries = read(w, allowed)
  if entries == nil then
    deactivate(n, org)
    return 0
  end
  local given, dropped = 0, false
  for _, entry in ipairs(entries) do
    local id = entry[2][2]
    if add_job(n, entry[1], id) then
      local handle = n .. '/' .. entry[1]
      held_until[#held_until + 1] = deadline
      held_until[#held_until + 1] = handle .. '/' .. worker
      held_by[#held_by + 1] = handle
      held_by[#held_by + 1] = id
      if l[3] then
        call('ZADD', P .. 'lease:' .. destination, deadline, handle)
      end
      given = given + 1
    else
      call('XACK', w, 'g', entry[1])
      call('XDEL', w, entry[1])
      dropped = true
    end
  end
  if given > 0 then
    job_target(n, org, t[1], destination, t[3])
    if l[1] then
      rate_charge(destination, tonumber(l[1]), tonumber(l[2]), given)
    end
  end
  call('HSET', key, 'f', start + given)
  if dropped and call('XLEN', w) == 0 then
    call('DEL', w)
  end
  if #entries < allowed then
    deactivate(n, org)
  elseif given >= room then
    deactivate(n, org)
    call('HSET', key, 'b', 'cap')
  else
    call('ZADD', P .. 'ready:' .. org, start + given, n)
  end
  return given
end

call('ZADD', P .. 'workers', 'GT', now + tonumber(ARGV[4]), worker)
local visits = 0
while left > 0 and visits < visits_limit do
  local first = call('ZRANGE', P .. 'ready', 0, 0, 'WITHSCORES')
  local org, org_start = first[1], tonumber(first[2])
  if not org then
    break
  end
  visits = visits + 1
  call('HSET', ctl, 'vt', org_start)
  local ready = P .. 'ready:' .. org
  local share = math.ceil(left / call('ZCARD', P .. 'ready'))
  local served = 0
  while served < share and visits < visits_limit do
    local target = call('ZRANGE', ready, 0, 0, 'WITHSCORES')
    if not target[1] then
      break
    end
    visits = visits + 1
    call('HSET', P .. 'o:' .. org, 'c', target[2])
    local quantum = math.ceil((share - served) / call('ZCARD', ready))
    served = served + serve(target[1], org, tonumber(target[2]), quantum)
  end
  left = left - served
  call('HSET', P .. 'o:' .. org, 'f', org_start + served)
  if call('EXISTS', ready) == 1 then
    call('ZADD', P .. 'ready', org_start + served, org)
  else
    call('ZREM', P .. 'ready', org)
  end
end

if #held_by > 0 then
  call('ZADD', P .. 'held', unpack(held_until))
  call('HSET', P .. 'held:' .. worker, unpack(held_by))
end
load_events()
local more = call('EXISTS', P .. 'ready')
if more == 1 then
  ring()
end
return { job_targets, job_list, job_events, unconfigured, more, next_due_ms() }
