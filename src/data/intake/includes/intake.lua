-- What an organization's events are counted and recognised by. KEYS[1] is `<prefix>{intake:<org>}:quota`, KEYS[2] `<prefix>{intake:<org>}:~`,
-- which never exists: while a Cluster moves the slot, Redis answers TRYAGAIN before the script begins. Fields of `quota`:
--   <month>       number of messages
--   told:<month>  highest step (percent) of it that was noted for Posthorn's own events
-- The other keys:
--   reserved       sorted set of the events that were counted a moment ago, so that a call that is sent again counts once
--   m:<bucket>:<xx>  hash of marks, `xx` the first byte of the mark: small hashes, dropped whole when their time is over
local call = redis.call
local quota = KEYS[1]
local P = string.sub(quota, 1, -6)
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local bucket_ms = 21600000
local month_kept_ms = 5356800000
local reserved_kept_ms = 60000

local function integer(number)
  return string.format('%.0f', number)
end

local function expire_not_before(key, ms)
  if call('PTTL', key) < ms then
    call('PEXPIRE', key, integer(ms))
  end
end

local function marks_key(bucket, mark)
  return P .. 'm:' .. integer(bucket) .. ':' .. string.sub(mark, 1, 2)
end

-- The newest mark of the last `window` ms, or of a little earlier: its key, state (c claimed, r released, a accepted), time and event.
local function find_mark(mark, window)
  local newest = math.floor(now / bucket_ms)
  for bucket = newest, math.floor((now - window) / bucket_ms), -1 do
    local key = marks_key(bucket, mark)
    local stored = call('HGET', key, mark)
    if stored then
      local state, ms, event = string.match(stored, '^(%a)(%d+) (.+)$')
      return key, state, tonumber(ms), event
    end
  end
  return nil
end

local function set_mark(key, mark, state, ms, event)
  call('HSET', key, mark, state .. integer(ms) .. ' ' .. event)
end

-- Counts the messages of an event against the month, once.
local function reserve(event, month, messages)
  call('ZREMRANGEBYSCORE', P .. 'reserved', '-inf', integer(now - reserved_kept_ms))
  if messages > 0 and call('ZADD', P .. 'reserved', 'NX', integer(now), event) == 1 then
    call('PEXPIRE', P .. 'reserved', reserved_kept_ms)
    call('HINCRBY', quota, month, messages)
    expire_not_before(quota, month_kept_ms)
  end
end

local function give_back(event, month, messages)
  if call('ZREM', P .. 'reserved', event) == 1 then
    call('HINCRBY', quota, month, -messages)
  end
end

-- {step, messages of the month} when 80 or 100 percent of it are reached and that was not told; else {}. 100 is reached, too, when above 80 something
-- `is_refused` because it would exceed the month.
local function untold_step(month, limit, is_refused)
  local messages = limit and tonumber(call('HGET', quota, month) or '0')
  if not limit or messages * 100 < limit * 80 then
    return {}
  end
  local step = (is_refused or messages >= limit) and 100 or 80
  if tonumber(call('HGET', quota, 'told:' .. month) or '0') >= step then
    return {}
  end
  return { step, messages }
end
