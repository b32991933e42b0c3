#!lua flags=allow-oom
-- Notes whose an id is that has no record in the registry. It stays the organization's that claimed it first.
-- KEYS[1] epoch
-- KEYS[2] owners: id of a record -> id of the organization that it belongs to for good (hash)
-- ARGV[1] epoch of the caller, [2] id, [3] organization
-- Returns {'fenced', epoch} | {'owned', organization} (the id is another organization's) | {'claimed'}
local call = redis.call
local stored_epoch = call('GET', KEYS[1])
if stored_epoch and tonumber(stored_epoch) > tonumber(ARGV[1]) then
  return {'fenced', stored_epoch}
end
call('HSETNX', KEYS[2], ARGV[2], ARGV[3])
local owner = call('HGET', KEYS[2], ARGV[2])
if owner ~= ARGV[3] then
  return {'owned', owner}
end
return {'claimed'}
