#!lua flags=allow-oom
-- Deletes an object: whatever is below it is gone for every reader, and `webhook-sweep.lua` removes it.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] kind ap, ep or sb, [2] number, [3] record that was read; of an application [4] its external id or '', [5] its name in lower case. Or ARGV[1] ty,
-- [2] id of an event type, [3] for how many milliseconds nobody may subscribe to it, at most an hour, [4] its name or ''.
-- Reply: {'removed'} | {'gone'} | {'stored', row} (it is another by now, and nothing was removed).
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-list.lua"
-- @include "includes/webhook-removal.lua"
-- @include "includes/webhook-gone.lua"
-- @include "includes/webhook-past.lua"

local kind, number = ARGV[1], ARGV[2]
if kind == 'ty' then
  mark_gone(number, tonumber(ARGV[3]))
  if ARGV[4] ~= '' then
    note_past_event_type(number, ARGV[4])
  end
  local event_type = call('HGET', P .. 'ty', number)
  if not event_type then
    return { 'gone' }
  end
  call('HDEL', P .. 'v', number, 'j:' .. number)
  call('HSET', P .. 'doom', 't' .. event_type, '')
  call('HDEL', P .. 'ty', number)
  call('HDEL', P .. 'tr', event_type)
  return { 'removed' }
end

local stored = call('HGET', P .. kind, number)
local row = stored and row_of[kind](number, stored)
if not row then
  return { 'gone' }
end
if stored ~= ARGV[3] then
  return { 'stored', row }
end
if kind == 'sb' then
  remove_subscription(number)
  return { 'removed' }
end
note_past_record(kind, number, stored)
if kind == 'ap' then
  if ARGV[4] ~= '' and call('HGET', P .. 'ax', ARGV[4]) == number then
    call('HDEL', P .. 'ax', ARGV[4])
  end
  call('ZREM', P .. 'an', ARGV[5] .. '\0' .. number)
  forget_id('app_', stored)
  bump({ { '*', number } })
  call('HSET', P .. 'doom', 'a' .. number, '')
else
  local application, place = string.match(stored, '^%S+ (%d+) (%d+) ')
  list_remove('a' .. application, place)
  forget_id('ep_', stored)
  bump_event_types_of(number)
  if call('HEXISTS', P .. 'es', number) == 1 then
    call('HSET', P .. 'doom', 'e' .. number, '')
  end
end
call('HDEL', P .. kind, number)
return { 'removed' }
