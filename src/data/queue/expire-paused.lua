#!lua flags=allow-oom
-- Moves messages that have waited too long at paused targets, webhook endpoints included, to the dead letters. Each call continues with the next paused
-- target, whichever worker made the previous call, until about 100 messages have ended.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] how long (ms) a message may wait in a paused target.
-- Reply: {how many, 1 when there is more of the targets that were read}. An error at one target does not stop the others.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/apart.lua"
-- @include "../shard/includes/count.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/waits.lua"

local per_step, max_expired = 200, 100
local longest_ms = tonumber(ARGV[1])
local expired, more = 0, false

local function expire_paused(n)
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.paused_since_ms)
  if not t[2] then
    return
  end
  if t[2] == '1' then
    call('HSET', P .. 't:' .. n, F.target.paused_since_ms, integer(now))
    return
  end
  local reason, error_type = 'queue_limit_exceeded', nil
  if is_for_webhooks(t[1]) then
    -- The reasons of messages to webhook endpoints are a closed list.
    reason, error_type = 'circuit_breaker_exhausted', 'disabled'
  end
  local count, has_more = expire_waits(n, t[1], tonumber(t[2]), longest_ms, reason, { error_type = error_type })
  expired = expired + count
  more = more or has_more
end

local function nothing_to_put_back() end

local cursor = call('HGET', ctl, F.control.paused_cursor) or '0'
local scan = call('SSCAN', P .. 'paused', cursor, 'COUNT', per_step)
for _, n in ipairs(scan[2]) do
  if expired >= max_expired then
    more = true
    break
  end
  apart.run(expire_paused, nothing_to_put_back, n)
end
if not more and scan[1] ~= cursor then
  call('HSET', ctl, F.control.paused_cursor, scan[1])
end
counters.write()
write_status_counts()
write_unfinished()
return apart.reply({ expired, more and 1 or 0 })
