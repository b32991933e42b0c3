#!lua flags=allow-oom
-- Removes a record with its index entries and appends one change, unless there is no such record.
-- Keys and arguments: see includes/registry-change.lua; ARGV[3] is empty, and there is no org: the caller compares the organization of the
-- record that it believes to be stored. The owner of the id stays.
-- Returns {'fenced', epoch} | {'equal'} (nothing there) | {'stored', record} (the belief was wrong: nothing written) |
-- {'changed'}
-- @include "includes/registry-change.lua"
-- @include "../../redis/scripts/includes/json.lua"

if is_fenced() then
  return {'fenced', stored_epoch}
end
if stored == '' then
  return {'equal'}
end
if stored ~= believed then
  return {'stored', stored}
end
-- A record that was published before there were owners names the organization that its id belongs to.
local org = decoded(stored).org
if org then
  call('HSETNX', KEYS[6], id, org)
end
call('HDEL', KEYS[5], id)
finish()
return {'changed'}
