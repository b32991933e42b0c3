-- Counts requests in a window that begins with its first request; requests that it has no room for are refused together and not counted.
-- Of the last quarter of a window, what other credentials asked for in the window before and have not got yet is kept for them: a credential gets it only
-- while it has less than is free. One that is alone may use all.
-- KEYS[1]  counter of the organization or source
-- KEYS[2]  hash of the window: `a<credential>` → how many it asked for, `g<credential>` → how many it got, `a` → how many all asked for
-- KEYS[3]  the same of the window before; both are absent where no credential is counted
-- ARGV[1]  by name (namedArgument in src/redis/script.ts): window_ms; requests, how many; limit of the window; credential, absent: none is counted;
--          kept_part of the window
-- Answers {1 or 0 (refused), count, end of the window in milliseconds since the epoch}.
-- @include "../../redis/scripts/includes/json.lua"

local asked = decoded(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
local left = redis.call('PTTL', KEYS[1])
local free = asked.limit - count
local allowed = asked.requests <= free

local own = asked.credential
local current, before = KEYS[2], KEYS[3]
-- The credentials of a window beyond these are not told apart.
local max_credentials = 1000

local function number(key, field)
  return tonumber(redis.call('HGET', key, field) or '0')
end

if own then
  if left < 0 and redis.call('EXISTS', current) == 1 then
    redis.call('RENAME', current, before)
    redis.call('PEXPIRE', before, asked.window_ms)
  end
  if redis.call('HLEN', current) > 2 * max_credentials then
    own = '*'
  end
  local got = number(current, 'g' .. own)
  local others = number(before, 'a') - number(before, 'a' .. own) - (count - got)
  local kept = math.min(asked.limit * asked.kept_part, math.max(0, others))
  allowed = allowed and (free - asked.requests >= kept or got < free)
  redis.call('HINCRBY', current, 'a' .. own, asked.requests)
  redis.call('HINCRBY', current, 'a', asked.requests)
  if allowed then
    redis.call('HINCRBY', current, 'g' .. own, asked.requests)
  end
end
if allowed then
  count = redis.call('INCRBY', KEYS[1], asked.requests)
end
if left < 0 then
  left = asked.window_ms
  redis.call('PEXPIRE', KEYS[1], left)
end
if own then
  -- The window that follows within one more reads it.
  redis.call('PEXPIRE', current, left + asked.window_ms)
end
return {allowed and 1 or 0, count, now + left}
