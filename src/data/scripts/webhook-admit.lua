#!lua flags=allow-oom
-- Lets subscriptions name an event type again that is there.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] its id.
-- Reply: {'admitted'}.
-- @include "includes/webhooks.lua"

call('ZREM', P .. 'gone', ARGV[1])
return { 'admitted' }
