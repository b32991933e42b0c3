#!lua flags=allow-oom
-- Moves what is due: retries into their work streams, waiting targets into `ready`, at most 100 and 16 of them per call.
--
-- KEYS: see includes/shard.lua. ARGV: none.
-- Reply: {how many were moved, servable work 0/1, ms until something is due or -1 (0: call again)}.
-- @include "includes/shard.lua"
-- @include "includes/target.lua"
-- @include "includes/work.lua"
-- @include "includes/limiter.lua"

local moved = 0
local due = call('ZRANGEBYSCORE', P .. 'due', '-inf', now, 'LIMIT', 0, 100)
for _, member in ipairs(due) do
  local n, id = string.match(member, '^(%d+) (.+)$')
  call('ZREM', P .. 'due', member)
  local usable = n and call('EXISTS', P .. 'm:' .. id) == 1 and not failed(redis.pcall('XLEN', P .. 'w:' .. n))
  if usable then
    enqueue(n, id)
    activate(n)
    moved = moved + 1
  end
end

-- Wakes only as many targets as the limiter has tokens or leases for.
local function wake_limiter(limiter)
  local l = call('HMGET', P .. 'l:' .. limiter, 'e', 'u', 'c')
  local count, again = 64, now + 1000
  if l[1] then
    local tokens, wait_us = rate_peek(limiter, tonumber(l[1]), tonumber(l[2]))
    count = math.min(count, tokens)
    again = now + math.max(1, math.ceil((tokens > 0 and tonumber(l[1]) or wait_us) / 1000))
  end
  if l[3] then
    local free, at = lease_peek(limiter, tonumber(l[3]))
    count = math.min(count, free)
    again = math.max(again, at)
  end
  if count > 0 then
    moved = moved + wake(limiter, count)
  end
  if call('EXISTS', P .. 'wait:' .. limiter) == 1 then
    call('ZADD', P .. 'waiting', again, limiter)
  else
    call('ZREM', P .. 'waiting', limiter)
  end
end

for _, limiter in ipairs(call('ZRANGEBYSCORE', P .. 'waiting', '-inf', now, 'LIMIT', 0, 16)) do
  wake_limiter(limiter)
end
local more = call('EXISTS', P .. 'ready')
if more == 1 then
  ring()
end
return { moved, more, next_due_ms() }
