-- @include "webhooks.lua"
-- @include "../../../redis/scripts/includes/json.lua"

-- How many subscriptions name each transform: the hash `tf`. Needs webhooks.lua.
local transforms = P .. 'tf'

-- The id of the transform in the record of a subscription; nil: it has none.
local function transform_of(record)
  if string.find(record, '"' .. F.webhook_subscription.transform .. '":', 1, true) then
    return decoded(string.match(record, '{.*$'))[F.webhook_subscription.transform]
  end
end

-- Subscriptions that were made before they were counted bring no count below nothing.
local function count_transform(id, change)
  if id and call('HINCRBY', transforms, id, change) <= 0 then
    call('HDEL', transforms, id)
  end
end
