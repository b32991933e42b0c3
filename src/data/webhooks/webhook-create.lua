#!lua flags=allow-oom
-- Makes an application or an endpoint under a number that was given out for it. A call that is sent again returns the same.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): kind ap or ep; number; part of its id; id where it is that of a custom resource; json;
-- mark of the request, or ''; of an application indexed {external_id or '', name in lower case}; of an endpoint its application {id, number, part}.
-- Reply: {'created'} | {'made', row} (this was made under the mark before) | {'used'} (another record has the number) | {'exists'} (the id is taken) |
-- {'taken', row of the application with that external id} |
-- {'missing'} (no application) .
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-lists.lua"
-- @include "includes/webhook-request-keys.lua"
-- @include "includes/webhook-tombstones.lua"

local object = decoded(ARGV[1])
local kind, number, id, part, mark, indexed = object.kind, integer(object.number), object.id, object.part, object.mark, object.indexed

local before = call('HGET', P .. kind, number)
if before then
  return { part_of(before) == part and 'created' or 'used' }
end
local made = made_under(mark)
local made_record = made and call('HGET', P .. kind, made)
local made_row = made_record and row_of[kind](made, made_record)
if made_row then
  return { 'made', made_row }
end
if id then
  local kept = call('HGET', P .. 'ids', id)
  if kept and call('HEXISTS', P .. kind, kept) == 1 then
    return { 'exists' }
  end
end

local head = part
local application
if kind == 'ap' then
  local other = indexed.external_id ~= '' and call('HGET', P .. 'ax', indexed.external_id)
  local record = other and call('HGET', P .. 'ap', other)
  if record then
    return { 'taken', application_row(other, record) }
  end
else
  application = find('ap', object.application.id, integer(object.application.number), object.application.part)
  if not application then
    return { 'missing' }
  end
end

-- A failover may have lost that the number was given out.
if tonumber(call('HGET', KEYS[1], F.webhook_control.last_number .. kind) or '0') < tonumber(number) then
  call('HSET', KEYS[1], F.webhook_control.last_number .. kind, number)
end
if kind == 'ap' then
  begin_tombstones(tonumber(number) == 1)
  if indexed.external_id ~= '' then
    call('HSET', P .. 'ax', indexed.external_id, number)
  end
  call('ZADD', P .. 'an', 0, indexed.name .. '\0' .. number)
else
  head = part .. ' ' .. application .. ' ' .. list_append(F.webhook_lists.endpoints_of .. application, number)
end
call('HSET', P .. kind, number, head .. ' ' .. object.json)
if id then
  call('HSET', P .. 'ids', id, number)
end
note_made(mark, number)
return { 'created' }
