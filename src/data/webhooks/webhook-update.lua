#!lua flags=allow-oom
-- Puts a record in the place of the one that was read.
-- KEYS: see includes/webhooks.lua.
-- ARGV[1] kind ap, ep or sb, [2] number, [3] record that was read, [4] record to store, [5] 1 when what matches an event changes; of an application
-- [6] external id that was read or '', [7] the one to store, [8] name in lower case that was read, [9] the one to store; of an endpoint whose
-- rotated secret is to be told, [6] field and [7] value of that in `rot`, [8] how many may be there.
-- Reply: {'updated'} (also when sent again) | {'stored', row} (it is another by now) | {'gone'} | {'taken', row of the application with that external id} |
-- {'retired'} (its transform is being deleted).
-- @include "includes/webhooks.lua"
-- @include "includes/webhook-gone.lua"
-- @include "includes/webhook-transforms.lua"

local kind, number, believed, wanted = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local stored = call('HGET', P .. kind, number)
local row = stored and row_of[kind](number, stored)
if not row then
  return { 'gone' }
end
if stored == wanted then
  return { 'updated' }
end
if stored ~= believed then
  return { 'stored', row }
end
if kind == 'ap' then
  local other = ARGV[7] ~= '' and call('HGET', P .. 'ax', ARGV[7])
  local record = other and other ~= number and call('HGET', P .. 'ap', other)
  if record then
    return { 'taken', application_row(other, record) }
  end
  if ARGV[6] ~= ARGV[7] then
    if ARGV[6] ~= '' then
      call('HDEL', P .. 'ax', ARGV[6])
    end
    if ARGV[7] ~= '' then
      call('HSET', P .. 'ax', ARGV[7], number)
    end
  end
  if ARGV[8] ~= ARGV[9] then
    call('ZREM', P .. 'an', ARGV[8] .. '\0' .. number)
    call('ZADD', P .. 'an', 0, ARGV[9] .. '\0' .. number)
  end
end
if kind == 'ep' and ARGV[6] and call('HLEN', P .. 'rot') < tonumber(ARGV[8]) then
  call('HSET', P .. 'rot', ARGV[6], ARGV[7])
end
if kind == 'sb' then
  local before, after = transform_of(stored), transform_of(wanted)
  if before ~= after then
    if after and is_gone(after) then
      return { 'retired' }
    end
    count_transform(before, -1)
    count_transform(after, 1)
  end
end
call('HSET', P .. kind, number, wanted)
if ARGV[5] == '1' then
  if kind == 'ap' then
    bump({ { '*', number } })
  elseif kind == 'ep' then
    bump_event_types_of(number)
  else
    bump({ { row[7], number } })
  end
end
return { 'updated' }
