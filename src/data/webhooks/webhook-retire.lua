#!lua flags=allow-oom
-- Before a transform is deleted: lets no subscription name it for a while, unless there are some that do.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] its id, [2] for how many milliseconds, at most an hour.
-- Reply: {how many subscriptions name it}; nothing is done unless that is 0.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-deletions.lua"

local count = tonumber(call('HGET', P .. 'tf', ARGV[1]) or '0')
if count == 0 then
  record_deletion(ARGV[1], tonumber(ARGV[2]))
end
return { count }
