#!lua flags=allow-oom
-- The batch of an archive that is to be written now. It stays the same until it has been written (archive-done.lua): the same messages, the
-- same name, and at the same destination the same layout.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; worker; layout; destination; max_records and max_bytes.
-- Reply: {batch, stamp after which and stamp with which it goes, layout}, or nil when there is nothing to write.
-- @include "../shard/includes/packed.lua"
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/ulid.lua"
-- @include "../../redis/scripts/includes/json.lua"

-- What a record has besides the event, and what is assumed of an attempt that does not have the short form.
local bytes_of_record, bytes_of_attempt = 1024, 12288

local wanted = decoded(ARGV[1])
local org, layout, destination = wanted.org, wanted.layout, wanted.destination
local key = P .. 'ar:' .. org
local a = call('HMGET', key, F.archive.batch, F.archive.written_stamp, F.archive.batch_last_stamp, F.archive.batch_layout,
  F.archive.batch_destination)
local after = a[2] or '0-0'
if a[1] then
  if a[5] ~= destination then
    call('HSET', key, F.archive.batch_layout, layout, F.archive.batch_destination, destination)
    a[4] = layout
  end
  return { a[1], after, a[3], a[4] }
end
local last, bytes = nil, 0
for _, entry in ipairs(call('XRANGE', P .. 'fin:' .. org, '(' .. after, '+', 'COUNT', wanted.max_records)) do
  local id = entry[2][2]
  local event = packed.event_of(id)
  bytes = bytes + bytes_of_record + call('STRLEN', P .. 'e:' .. (event or '')) + bytes_of_attempt * call('HLEN', P .. 'a:' .. id)
  if last and bytes > wanted.max_bytes then
    break
  end
  last = entry[1]
end
if not last then
  call('HDEL', key, F.archive.waiting, F.archive.lease_end_ms, F.archive.failures, F.archive.failing_since_ms, F.archive.last_error)
  call('ZREM', P .. 'az', org)
  return false
end
local id = batch_id(wanted.worker)
call('HSET', key, F.archive.batch, id, F.archive.batch_last_stamp, last, F.archive.batch_layout, layout, F.archive.batch_destination, destination)
return { id, after, last, layout }
