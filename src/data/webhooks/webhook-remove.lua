#!lua flags=allow-oom
-- Deletes an object. Objects below it are gone for every reader at once, and `webhook-sweep.lua` removes them.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): kind ap, ep or sb; number; believed: the record that was read; of an application indexed
-- {external_id or '', name in lower case}. Or kind ty; id of an event type; gone_ms: for how many milliseconds nobody may subscribe to it, at most an hour;
-- its name or ''.
-- Reply: {'removed'} | {'gone'} | {'stored', row} (it is another by now, and nothing was removed).
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"
-- @include "includes/webhook-removal.lua"
-- @include "includes/webhook-deletions.lua"
-- @include "includes/webhook-tombstones.lua"

local object = decoded(ARGV[1])
local kind = object.kind
if kind == 'ty' then
  local id = object.id
  record_deletion(id, object.gone_ms)
  if object.name ~= '' then
    add_event_type_tombstone(id, object.name)
  end
  local event_type = call('HGET', P .. 'ty', id)
  if not event_type then
    return { 'gone' }
  end
  call('HDEL', P .. 'v', id, F.webhook_versions.changes_of .. id)
  call('HSET', P .. 'doom', F.webhook_doomed.event_type .. event_type, '')
  call('HDEL', P .. 'ty', id)
  call('HDEL', P .. 'tr', event_type)
  return { 'removed' }
end

local number = integer(object.number)
local stored = call('HGET', P .. kind, number)
local row = stored and row_of[kind](number, stored)
if not row then
  return { 'gone' }
end
if stored ~= object.believed then
  return { 'stored', row }
end
if kind == 'sb' then
  remove_subscription(number)
  return { 'removed' }
end
add_record_tombstone(kind, number, stored)
if kind == 'ap' then
  local external_id = object.indexed.external_id
  if external_id ~= '' and call('HGET', P .. 'ax', external_id) == number then
    call('HDEL', P .. 'ax', external_id)
  end
  call('ZREM', P .. 'an', object.indexed.name .. '\0' .. number)
  forget_id('app_', stored)
  bump({ { F.webhook_versions.any, number } })
  call('HSET', P .. 'doom', F.webhook_doomed.application .. number, '')
else
  local application, place = string.match(stored, '^%S+ (%d+) (%d+) ')
  list_remove(F.webhook_lists.endpoints_of .. application, place)
  forget_id('ep_', stored)
  bump_event_types_of(number)
  if call('HEXISTS', P .. 'es', number) == 1 then
    call('HSET', P .. 'doom', F.webhook_doomed.endpoint .. number, '')
  end
end
call('HDEL', P .. kind, number)
return { 'removed' }
