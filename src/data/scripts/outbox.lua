#!lua flags=allow-oom
-- Reads what has to be carried to other shards, the oldest first; what is of no use any more is removed.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] how many at most.
-- Reply: entries {entry, shard, kind, …}: x {event, text or '' when it is gone, targets}; v {message, event, text, destination,
-- organization, route, first destination, hash as a flat list, hash of long attempts as a flat list}; r, g {key}.
-- @include "includes/shard.lua"
-- @include "includes/outbox.lua"

local bytes_limit = 4194304
local bytes, reply = 0, {}

local function read(entry, f)
  if f.k == 'x' then
    local text = call('GET', P .. 'e:' .. f.e) or ''
    bytes = bytes + #text + #f.t
    return { entry, f.s, f.k, f.e, text, f.t }
  elseif f.k ~= 'v' then
    return { entry, f.s, f.k, f.m or f.e }
  end
  local key = P .. 'm:' .. f.m
  local m = call('HMGET', key, 's', 'v', 'e', 't', 'o', 'od')
  local t = m[4] and call('HMGET', P .. 't:' .. m[4], 'o', 'r') or {}
  if m[1] ~= 'm' or m[2] ~= entry or not t[1] then
    end_sending(entry)
    return nil
  end
  local text = call('GET', P .. 'e:' .. m[3]) or ''
  bytes = bytes + #text
  local first = m[6] or call('HGET', P .. 't:' .. m[5], 'd') or ''
  return { entry, f.s, f.k, f.m, m[3], text, f.d, t[1], t[2], first, call('HGETALL', key), call('HGETALL', P .. 'a:' .. f.m) }
end

for _, found in ipairs(call('XRANGE', P .. 'out', '-', '+', 'COUNT', ARGV[1])) do
  local fields = {}
  for k = 1, #found[2], 2 do
    fields[found[2][k]] = found[2][k + 1]
  end
  if bytes > bytes_limit then
    break
  end
  reply[#reply + 1] = read(found[1], fields)
end
return reply
