#!lua flags=allow-oom
-- Writes a record with its index entries and appends one change, unless the stored record is equal and found by the fields that hclaim names.
-- Keys and arguments: see includes/registry-change.lua.
-- An id belongs to the organization that published it first, also after its record is retracted. A record without an owner (it was
-- published before there were owners) names the organization that its id belongs to.
-- Returns {'fenced', epoch} | {'owned', organization} (the id is another organization's) | {'taken'} (a field of an index that hclaim names is
-- another organization's) | {'equal'} | {'stored', record} (the belief was wrong: nothing written) | {'changed'}
-- @include "includes/registry-change.lua"
-- @include "../../redis/scripts/includes/json.lua"

-- Another record of the organization may have had the field meanwhile, and have taken it along.
local function is_found_by_claims()
  for i, operation in ipairs(change.operations) do
    if operation[1] == 'hclaim' and call('HGET', KEYS[6 + i], operation[2]) ~= id then
      return false
    end
  end
  return true
end

if is_fenced() then
  return {'fenced', stored_epoch}
end
local org = change.org
if org then
  local owner = call('HGET', KEYS[6], id)
  if not owner and stored ~= '' then
    owner = decoded(stored).org
  end
  if owner and owner ~= org then
    return {'owned', owner}
  end
  for i, operation in ipairs(change.operations) do
    if operation[1] == 'hclaim' and is_of_another(KEYS[6 + i], operation[2], org) then
      return {'taken'}
    end
  end
  call('HSETNX', KEYS[6], id, org)
end
if stored == wanted then
  if not org or is_found_by_claims() then
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
