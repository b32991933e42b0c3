#!lua
-- Adds requests whose signatures failed to what is kept of a source. Failures with the same description are one entry. The oldest entry makes room for a
-- new one, and the source that failed longest ago makes room for another source of the organization.
--
-- KEYS[1] list of the source, the entry with the newest failure last. An entry is `<first> <last> <requests> <seconds behind> <user agent> <description>`:
--   first and last are times in milliseconds since the epoch, the user agent is URI-encoded; `-` stands for no seconds behind and for no user agent
-- KEYS[2] sorted set of the organization: source → its newest failure
-- KEYS[3] hash of the organization: source → `<first> <requests>`, with those that are no entry
-- ARGV[1] by name (namedArgument in src/redis/script.ts): source; kept_ms: how long a failure is kept; max_entries of a source; max_sources of the
--   organization; requests in all, the times first_ms and last_ms of the first and of the newest one; entries {first, last, requests, seconds behind, user
--   agent, description}, all of them texts.
-- Reply: how many entries there are.
-- @include "../../redis/scripts/includes/json.lua"

local call = redis.call
local failed = decoded(ARGV[1])
local source, newest, max_sources = failed.source, failed.last_ms, failed.max_sources
local oldest = newest - failed.kept_ms
local base = string.sub(KEYS[1], 1, #KEYS[1] - #source)

local function forget(other)
  call('DEL', base .. other)
  call('ZREM', KEYS[2], other)
  call('HDEL', KEYS[3], other)
end

-- One failure brings one source, so a few steps keep the bound.
for _ = 1, 4 do
  local last = call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  local is_over = last[1] and tonumber(last[2]) < oldest
  local is_in_the_way = last[1] and call('ZCARD', KEYS[2]) >= max_sources and not call('ZSCORE', KEYS[2], source)
  if not is_over and not is_in_the_way then
    break
  end
  forget(last[1])
end

local known = {}
for _, entry in ipairs(call('LRANGE', KEYS[1], 0, -1)) do
  local first, last, requests, description = string.match(entry, '^(%d+) (%d+) (%d+) %S+ %S+ (.*)$')
  if not first or tonumber(last) < oldest then
    call('LREM', KEYS[1], 1, entry)
  else
    known[description] = { entry = entry, first = first, requests = tonumber(requests) }
  end
end

for _, entry in ipairs(failed.entries) do
  local first, last, count, behind, user_agent, description = unpack(entry)
  local requests = tonumber(count)
  local before = known[description]
  if before then
    call('LREM', KEYS[1], 1, before.entry)
    first, requests = before.first, before.requests + requests
  end
  call('RPUSH', KEYS[1], table.concat({ first, last, string.format('%.0f', requests), behind, user_agent, description }, ' '))
end
while call('LLEN', KEYS[1]) > failed.max_entries do
  call('LPOP', KEYS[1])
end

local since, total
if next(known) then
  since, total = string.match(call('HGET', KEYS[3], source) or '', '^(%d+) (%d+)$')
end
call('HSET', KEYS[3], source, (since or string.format('%.0f', failed.first_ms)) .. ' ' .. string.format('%.0f', tonumber(total or '0') + failed.requests))
call('ZADD', KEYS[2], string.format('%.0f', newest), source)
for i = 1, 3 do
  call('PEXPIRE', KEYS[i], string.format('%.0f', failed.kept_ms))
end
return call('LLEN', KEYS[1])
