#!lua flags=allow-oom
-- Removes some of the objects that belonged to deleted ones.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] how many endpoints and subscriptions at most.
-- Reply: 1 when there is more to do.
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"
-- @include "includes/webhook-removal.lua"
-- @include "includes/webhook-tombstones.lua"
-- @include "includes/some-fields.lua"

local doom = P .. 'doom'
local budget = tonumber(ARGV[1])
local max_fields = 100

-- Each function removes objects within the budget and returns whether none is left.
local function sweep_endpoint(endpoint)
  local removed, is_done = empty_endpoint(endpoint, budget)
  budget = budget - removed
  return is_done
end

local function sweep_list(name, remove)
  while budget > 0 do
    local found, more = list_walk(name, math.huge, -1, math.min(budget, 50), max_fields)
    for _, each in ipairs(found) do
      if budget <= 0 then
        return false
      end
      if not remove(each[2], each[1]) then
        return false
      end
      budget = budget - 1
    end
    if not more and #found == 0 then
      call('HDEL', lists, name)
      return true
    end
    if #found == 0 then
      -- A long stretch without members: the list now ends before it.
      local count = list_head(name)
      call('HSET', lists, name, integer(count) .. ' ' .. integer(more + 1))
      return false
    end
  end
  return false
end

local function sweep_application(application)
  local name = F.webhook_lists.endpoints_of .. application
  return sweep_list(name, function(endpoint, place)
    if not sweep_endpoint(endpoint) then
      return false
    end
    local record = call('HGET', P .. 'ep', endpoint)
    if record then
      add_record_tombstone('ep', endpoint, record)
      forget_id('ep_', record)
      call('HDEL', P .. 'ep', endpoint)
    end
    list_remove(name, place)
    return true
  end)
end

local function sweep_event_type(event_type)
  local name = F.webhook_lists.subscriptions_of .. event_type
  return sweep_list(name, function(subscription, place)
    remove_subscription(subscription)
    list_remove(name, place)
    return true
  end)
end

local sweep = {
  [F.webhook_doomed.application] = sweep_application,
  [F.webhook_doomed.endpoint] = sweep_endpoint,
  [F.webhook_doomed.event_type] = sweep_event_type,
}
local found = some_fields(doom, 20)
for k = 1, #found, 2 do
  local field = found[k]
  if budget <= 0 or not sweep[string.sub(field, 1, 1)](string.sub(field, 2)) then
    return 1
  end
  call('HDEL', doom, field)
end
return call('EXISTS', doom)
