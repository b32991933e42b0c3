#!lua flags=allow-oom
-- Removes a record with its index entries and appends one change, unless there is no such record.
-- Keys and arguments: see includes/registry-change.lua; ARGV[6] is empty.
-- Returns {'fenced', epoch} | {'equal'} (nothing there) | {'stored', record} (the belief was wrong: nothing written) |
-- {'changed'}
-- @include "includes/registry-change.lua"

if is_fenced() then
  return {'fenced', stored_epoch}
end
if stored == '' then
  return {'equal'}
end
if stored ~= believed then
  return {'stored', stored}
end
call('HDEL', KEYS[5], id)
finish()
return {'changed'}
