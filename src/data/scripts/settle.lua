#!lua flags=allow-oom
-- Ends attempts: a batch of one worker. XACK is the gate: whoever gets 1 from it owns the transition; a zombie, whose work
-- was put back, or a re-sent call gets 0 and changes nothing but its own lease.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] worker, [2] number of items, [3] 1: ring for others when work is left; then per item: target, entry, message,
-- outcome, detail, short attempt, long attempt, duration in ms, largest number of attempts or ''.
-- Outcomes: `d` delivered; `r` retry, detail = delay in ms; `q` dead letter, detail = reason; `b` back to the queue, no
-- attempt counted. An attempt is recorded in its short form (in the message's hash) or its long one (`a:<message>`).
-- Reply: {per item 1 done or 0 settled by somebody else, servable work left 0/1, ms until something is due or -1}.
-- @include "includes/shard.lua"
-- @include "includes/index.lua"
-- @include "includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/finish.lua"
-- @include "includes/count.lua"

local worker = ARGV[1]
local held_by = P .. 'held:' .. worker
local count = tonumber(ARGV[2])
local reply, targets, order = {}, {}, {}
local handles, held, closed = {}, {}, 0

local function target_of(n)
  local target = targets[n]
  if not target then
    local t = call('HMGET', P .. 't:' .. n, 'o', 'd', 'a')
    target = { org = t[1], destination = t[2] or '', mean = tonumber(t[3] or ''), measured = false, released = 0, done = {} }
    local kind = call('TYPE', P .. 'w:' .. n).ok
    target.usable = target.org and (kind == 'stream' or kind == 'none')
    target.leased = target.org and call('EXISTS', P .. 'lease:' .. target.destination) == 1
    targets[n] = target
    order[#order + 1] = n
  end
  return target
end

-- Arguments of an item, counted from 1.
local function item(k, position)
  return ARGV[3 + (k - 1) * 9 + position]
end

for k = 1, count do
  handles[k] = item(k, 1) .. '/' .. item(k, 2)
  held[k] = handles[k] .. '/' .. worker
end
-- `held:<worker>` guards against an entry id that an emptied Redis has given out again.
local holding = count > 0 and call('HMGET', held_by, unpack(handles)) or {}
if count > 0 then
  call('ZREM', P .. 'held', unpack(held))
  call('HDEL', held_by, unpack(handles))
end

for k = 1, count do
  local n, entry, id, outcome, detail = item(k, 1), item(k, 2), item(k, 3), item(k, 4), item(k, 5)
  local short, long, duration, max = item(k, 6), item(k, 7), tonumber(item(k, 8)), item(k, 9)
  local target = target_of(n)
  if target.leased then
    target.released = target.released + call('ZREM', P .. 'lease:' .. target.destination, handles[k])
  end
  if holding[k] ~= id or not target.usable or call('XACK', P .. 'w:' .. n, 'g', entry) == 0 then
    reply[k] = 0
  else
    reply[k] = 1
    target.done[#target.done + 1] = entry
    local key = P .. 'm:' .. id
    local m = call('HMGET', key, 'e', 'n')
    if m[1] then
      local fields = {}
      local attempts = tonumber(m[2] or '0')
      if short ~= '' or long ~= '' then
        attempts = attempts + 1
        fields = { 'n', attempts }
        if long == '' then
          fields[3], fields[4] = attempts, short
        else
          call('HSET', P .. 'a:' .. id, attempts, long)
        end
      end
      if max ~= '' then
        fields[#fields + 1] = 'x'
        fields[#fields + 1] = max
      end
      if duration >= 0 then
        target.mean = target.mean and (target.mean * 0.8 + duration * 0.2) or duration
        target.measured = true
      end
      local changes
      if outcome == 'd' then
        changes = { finish(id, target.org, 'd') }
        count_delivery(target.org, target.destination, 1, 1, duration)
      elseif outcome == 'q' then
        changes = { finish(id, target.org, 'q', detail) }
        count_delivery(target.org, target.destination, 1, 0, math.max(0, duration))
      elseif outcome == 'r' then
        local due = now + tonumber(detail)
        changes = { 's', 'r', 'd', due }
        call('ZADD', P .. 'due', due, n .. ' ' .. id)
      else
        changes = { 's', attempts > 0 and 'r' or 'p' }
        target.back = target.back or {}
        target.back[#target.back + 1] = id
      end
      if outcome == 'd' or outcome == 'q' then
        closed = closed + 1
        if m[2] then
          call('HDEL', key, 'd')
        end
      end
      for _, value in ipairs(changes) do
        fields[#fields + 1] = value
      end
      call('HSET', key, unpack(fields))
    end
  end
end

for _, n in ipairs(order) do
  local target = targets[n]
  if target.usable then
    if #target.done > 0 then
      call('XDEL', P .. 'w:' .. n, unpack(target.done))
    end
    if target.back then
      for _, id in ipairs(target.back) do
        enqueue(n, id)
      end
      activate(n)
    end
    if target.measured then
      call('HSET', P .. 't:' .. n, 'a', string.format('%.1f', target.mean))
    end
    settle_target(n)
    if target.released > 0 then
      wake(target.destination, target.released)
    end
  end
end
if closed > 0 then
  call('HINCRBY', ctl, 'open', -closed)
end
write_delivery_counts()
local more = call('EXISTS', P .. 'ready')
if more == 1 and ARGV[3] == '1' then
  ring()
end
return { reply, more, next_due_ms() }
