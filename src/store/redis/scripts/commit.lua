-- Changes one object if it still has the expected version, and logs the change under the next revision.
--
-- KEYS[1] meta            hash: marker, revision
-- KEYS[2] changes         stream, entry ids <revision>-0, fields F.store_change
-- KEYS[3] objects of the kind       hash: member -> <version>\n<object>
-- KEYS[4] names of the kind         sorted set, all scores 0: members
-- KEYS[5] objects of kind Namespace (hash as KEYS[3])
-- KEYS[6] dependents      sorted set, all scores 0: <owner uid>|<kind>|<member>
-- ARGV[1] by name (namedArgument in src/redis/script.ts): marker to take when the store has none; member; version that the object must have, '' when it must
--   not exist; type of the change: added, modified or deleted; kind; namespace, '' for cluster-scoped kinds; owner_namespace: member of the namespace, which
--   must exist and not be terminating, nil when that does not matter; log_length; removed and added: members of the dependents
-- ARGV[2] the object, to keep; '' when it is deleted
-- ARGV[3] the object, for the log
--
-- Returns {'ok', version} or {'conflict'} or {'namespaceMissing'} or {'namespaceTerminating'}. The second of two equal calls is a
-- conflict.
-- @include "../../../redis/scripts/includes/json.lua"

local change = decoded(ARGV[1])
local marker = redis.call('HGET', KEYS[1], 'marker')
local stored = redis.call('HGET', KEYS[3], change.member)
local version = ''
if stored then
  version = string.sub(stored, 1, string.find(stored, '\n', 1, true) - 1)
end
if version ~= change.version then
  return {'conflict'}
end
if change.owner_namespace then
  local namespace = redis.call('HGET', KEYS[5], change.owner_namespace)
  if not namespace then
    return {'namespaceMissing'}
  end
  local object = cjson.decode(string.sub(namespace, string.find(namespace, '\n', 1, true) + 1))
  if object.metadata.deletionTimestamp then
    return {'namespaceTerminating'}
  end
end

if not marker then
  marker = change.marker
  redis.call('HSET', KEYS[1], 'marker', marker)
end
local revision = redis.call('HINCRBY', KEYS[1], 'revision', 1)
local new = revision .. '-' .. marker
if change.type == 'deleted' then
  redis.call('HDEL', KEYS[3], change.member)
  redis.call('ZREM', KEYS[4], change.member)
else
  redis.call('HSET', KEYS[3], change.member, new .. '\n' .. ARGV[2])
  redis.call('ZADD', KEYS[4], 0, change.member)
end
for _, dependent in ipairs(change.removed) do
  redis.call('ZREM', KEYS[6], dependent)
end
for _, dependent in ipairs(change.added) do
  redis.call('ZADD', KEYS[6], 0, dependent)
end
redis.call('XADD', KEYS[2], 'MAXLEN', change.log_length, revision .. '-0', F.store_change.type, change.type,
  F.store_change.kind, change.kind, F.store_change.namespace, change.namespace, F.store_change.object, ARGV[3])
return {'ok', new}
