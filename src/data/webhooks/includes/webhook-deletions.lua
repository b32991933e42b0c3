-- @include "webhooks.lua"

-- Event types and transforms that no subscription may name, as they are being deleted or were: the sorted set `gone`, by the time in milliseconds
-- until which that holds. Whoever has looked before the deletion whether they are there comes too late. Needs webhooks.lua.
local gone = P .. 'gone'
local now_ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local longest_ms = 3600000

local function is_deleted(id)
  local until_ms = call('ZSCORE', gone, id)
  return until_ms and tonumber(until_ms) > now_ms
end

local function record_deletion(id, ms)
  call('ZREMRANGEBYSCORE', gone, '-inf', integer(now_ms))
  call('ZADD', gone, integer(now_ms + ms), id)
  call('PEXPIRE', gone, longest_ms)
end
