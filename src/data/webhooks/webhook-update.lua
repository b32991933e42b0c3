#!lua flags=allow-oom
-- Puts a record in the place of the one that was read.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): kind ap, ep or sb; number; believed: the record that was read; wanted: the record to store;
-- changes_matching: what matches an event changes; of an application before and after {external_id or '', name in lower case}; of an endpoint whose rotated
-- secret is to be noted, rotation {name in `rot`, its text, max_pending}.
-- Reply: {'updated'} (also when sent again) | {'stored', row} (it is another by now) | {'gone'} | {'taken', row of the application with that external id} |
-- {'retired'} (its transform is being deleted).
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-deletions.lua"
-- @include "includes/webhook-transforms.lua"

local change = decoded(ARGV[1])
local kind, number, wanted, before, after = change.kind, integer(change.number), change.wanted, change.before, change.after
local stored = call('HGET', P .. kind, number)
local row = stored and row_of[kind](number, stored)
if not row then
  return { 'gone' }
end
if stored == wanted then
  return { 'updated' }
end
if stored ~= change.believed then
  return { 'stored', row }
end
if kind == 'ap' then
  local other = after.external_id ~= '' and call('HGET', P .. 'ax', after.external_id)
  local record = other and other ~= number and call('HGET', P .. 'ap', other)
  if record then
    return { 'taken', application_row(other, record) }
  end
  if before.external_id ~= after.external_id then
    if before.external_id ~= '' then
      call('HDEL', P .. 'ax', before.external_id)
    end
    if after.external_id ~= '' then
      call('HSET', P .. 'ax', after.external_id, number)
    end
  end
  if before.name ~= after.name then
    call('ZREM', P .. 'an', before.name .. '\0' .. number)
    call('ZADD', P .. 'an', 0, after.name .. '\0' .. number)
  end
end
local rotation = change.rotation
if rotation and call('HLEN', P .. 'rot') < rotation.max_pending then
  call('HSET', P .. 'rot', rotation.name, rotation.text)
end
if kind == 'sb' then
  local old, new = transform_of(stored), transform_of(wanted)
  if old ~= new then
    if new and is_deleted(new) then
      return { 'retired' }
    end
    count_transform(old, -1)
    count_transform(new, 1)
  end
end
call('HSET', P .. kind, number, wanted)
if change.changes_matching then
  if kind == 'ap' then
    bump({ { F.webhook_versions.any, number } })
  elseif kind == 'ep' then
    bump_event_types_of(number)
  else
    bump({ { row[7], number } })
  end
end
return { 'updated' }
