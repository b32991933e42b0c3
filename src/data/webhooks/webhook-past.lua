#!lua flags=no-writes
-- Reads what deleted applications and endpoints were (includes/webhook-past.lua), and which event types had a name.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] kind ap or ep, then per id the id, its number, its part; or ARGV[1] ty, [2] the name of event types.
-- Reply: per id the name of the application or the URL of the endpoint, or '' when nothing is known; of event types since when (ms) all that were deleted are known, or '', and
-- their ids.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-past.lua"

local kind, found = ARGV[1], {}
if kind == 'ty' then
  found[1] = call('HGET', KEYS[1], 'ps') or ''
  for id in string.gmatch(call('HGET', P .. 'past', 'n:' .. ARGV[2]) or '', '%S+') do
    found[#found + 1] = id
  end
  return found
end
for k = 2, #ARGV, 3 do
  local id, number, part = ARGV[k], ARGV[k + 1], ARGV[k + 2]
  local past = call('HMGET', P .. 'past', id, kind .. ':' .. number .. ':' .. part)
  -- Of an endpoint whose application is deleted the record is there until it is swept.
  local _, record = find(kind, id, number, part)
  found[#found + 1] = record and shown_of(kind, record) or past[1] or past[2] or ''
end
return found
