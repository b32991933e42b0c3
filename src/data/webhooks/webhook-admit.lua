#!lua flags=allow-oom
-- Lets subscriptions name an event type again that is there.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] its id.
-- Reply: {'admitted'}.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-tombstones.lua"

begin_tombstones(call('EXISTS', KEYS[1]) == 0)
call('ZREM', P .. 'gone', ARGV[1])
return { 'admitted' }
