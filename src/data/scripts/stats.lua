#!lua flags=no-writes
-- Figures of a shard for the metrics.
--
-- KEYS: see includes/shard.lua. ARGV: none.
-- Reply: {unfinished messages, retries that wait, held by workers, dead letters, id of the oldest unread message or '', entries in the outbox,
-- age of the oldest of them in ms, messages that more workers could deliver sooner}.
-- The oldest is looked for in at most 128 ready targets. What more workers could not deliver sooner, since it waits for its next attempt, a
-- circuit, a limit, the end of a pause or the rest of its batch, is counted in samples where it is much.
-- @include "includes/shard.lua"
-- @include "includes/target.lua"
-- @include "includes/outbox.lua"

local oldest, looked = '', 0
for _, org in ipairs(call('ZRANGE', P .. 'ready', 0, 63)) do
  for _, n in ipairs(call('ZRANGE', P .. 'ready:' .. org, 0, 127 - looked)) do
    looked = looked + 1
    local entry = redis.pcall('XRANGE', P .. 'w:' .. n, '-', '+', 'COUNT', 1)
    local id = not failed(entry) and entry[1] and entry[1][2][2]
    -- Ids begin with their time, so the smallest is the oldest.
    if id and (oldest == '' or string.sub(id, -25) < string.sub(oldest, -25)) then
      oldest = id
    end
  end
  if looked >= 128 then
    break
  end
end

-- Messages of targets that are blocked for another reason than a lack of workers: their own cap and the share of slow targets grow with these.
local seen = {}
local function blocked_in(targets)
  local sum = 0
  for _, n in ipairs(targets) do
    if not seen[n] then
      seen[n] = true
      sum = sum + queued(n)
    end
  end
  return sum
end

-- `sum` was found in `looked` of `all`.
local function projected(sum, looked, all)
  return looked == 0 and 0 or sum * math.max(1, all / looked)
end

local blocked = 0
for _, set in ipairs({ 'paused', 'broken' }) do
  local targets = call('SSCAN', P .. set, 0, 'COUNT', 128)[2]
  blocked = blocked + projected(blocked_in(targets), #targets, call('SCARD', P .. set))
end
local limiters = call('ZRANGE', P .. 'waiting', 0, 63)
local under_limiters = 0
for _, limiter in ipairs(limiters) do
  local mark = string.sub(limiter, 1, 5)
  if mark ~= '~slow' and string.sub(mark, 1, 1) ~= '!' then
    local targets = call('ZRANGE', P .. 'wait:' .. limiter, 0, 15)
    under_limiters = under_limiters + projected(blocked_in(targets), #targets, call('ZCARD', P .. 'wait:' .. limiter))
  end
end
blocked = blocked + projected(under_limiters, #limiters, call('ZCARD', P .. 'waiting'))

local open, due = tonumber(call('HGET', ctl, 'open') or '0'), call('ZCARD', P .. 'due')
return {
  open,
  due,
  call('ZCARD', P .. 'held'),
  call('XLEN', P .. 'dead'),
  oldest,
  call('XLEN', P .. 'out'),
  oldest_wait_ms() or 0,
  math.max(0, math.floor(open - due - blocked)),
}
