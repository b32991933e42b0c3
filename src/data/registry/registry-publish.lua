#!lua flags=allow-oom
-- Writes a record with its index entries and appends one change, unless the stored record is equal and found by the fields that hclaim names.
-- Keys and arguments: see includes/registry-change.lua.
-- An id stays the organization's that published it first, also when its record is retracted. A record that stands without an owner (it was
-- published before there were owners) says whose its id is.
-- Returns {'fenced', epoch} | {'owned', organization} (the id is another organization's) | {'taken'} (a field of an index that hclaim names is
-- another organization's) | {'equal'} | {'stored', record} (the belief was wrong: nothing written) | {'changed'}
-- @include "includes/registry-change.lua"
-- @include "../shard/includes/json.lua"

-- Another record of the organization may have had the field meanwhile, and have taken it along.
local function is_found_by_claims()
  for i = 1, tonumber(ARGV[8]) do
    if ARGV[7 + 2 * i] == 'hclaim' and call('HGET', KEYS[6 + i], ARGV[8 + 2 * i]) ~= id then
      return false
    end
  end
  return true
end

if is_fenced() then
  return {'fenced', stored_epoch}
end
local org = ARGV[7]
if org ~= '' then
  local owner = call('HGET', KEYS[6], id)
  if not owner and stored ~= '' then
    owner = decoded(stored).org
  end
  if owner and owner ~= org then
    return {'owned', owner}
  end
  for i = 1, tonumber(ARGV[8]) do
    if ARGV[7 + 2 * i] == 'hclaim' and is_of_another(KEYS[6 + i], ARGV[8 + 2 * i], org) then
      return {'taken'}
    end
  end
  call('HSETNX', KEYS[6], id, org)
end
if stored == wanted then
  if org == '' or is_found_by_claims() then
    return {'equal'}
  end
  finish()
  return {'changed'}
end
if stored ~= believed then
  return {'stored', stored}
end
call('HSET', KEYS[5], id, wanted)
finish()
return {'changed'}
