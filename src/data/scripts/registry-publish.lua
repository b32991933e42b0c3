#!lua flags=allow-oom
-- Writes a record with its index entries and appends one change, unless the stored record is equal.
-- Keys and arguments: see includes/registry-change.lua.
-- Returns {'fenced', epoch} | {'equal'} | {'stored', record} (the belief was wrong: nothing written) | {'changed'}
-- @include "includes/registry-change.lua"

if is_fenced() then
  return {'fenced', stored_epoch}
end
if stored == wanted then
  return {'equal'}
end
if stored ~= believed then
  return {'stored', stored}
end
call('HSET', KEYS[5], id, wanted)
finish()
return {'changed'}
