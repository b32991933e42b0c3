-- Changes one object if it still has the expected version, and logs the change under the next revision.
--
-- KEYS[1] meta            hash: marker, revision
-- KEYS[2] changes         stream, entry ids <revision>-0: t type, k kind, n namespace, o object
-- KEYS[3] objects of the kind       hash: member -> <version>\n<object>
-- KEYS[4] names of the kind         sorted set, all scores 0: members
-- KEYS[5] objects of kind Namespace (hash as KEYS[3])
-- KEYS[6] dependents      sorted set, all scores 0: <owner uid>|<kind>|<member>
-- ARGV[1] marker to take when the store has none
-- ARGV[2] member
-- ARGV[3] version that the object must have; '' when it must not exist
-- ARGV[4] type of the change: added, modified or deleted
-- ARGV[5] the object, to keep; '' when it is deleted
-- ARGV[6] the object, for the log
-- ARGV[7] kind
-- ARGV[8] namespace; '' for cluster-scoped kinds
-- ARGV[9] member of the namespace, which must exist and not be terminating; '' when that does not matter
-- ARGV[10] length of the log
-- ARGV[11] number of dependents members to remove; they follow, and after them those to add
--
-- Returns {'ok', version} or {'conflict'} or {'namespaceMissing'} or {'namespaceTerminating'}. Sent twice, the second is a
-- conflict.
local marker = redis.call('HGET', KEYS[1], 'marker')
local stored = redis.call('HGET', KEYS[3], ARGV[2])
local version = ''
if stored then
  version = string.sub(stored, 1, string.find(stored, '\n', 1, true) - 1)
end
if version ~= ARGV[3] then
  return {'conflict'}
end
if ARGV[9] ~= '' then
  local namespace = redis.call('HGET', KEYS[5], ARGV[9])
  if not namespace then
    return {'namespaceMissing'}
  end
  local object = cjson.decode(string.sub(namespace, string.find(namespace, '\n', 1, true) + 1))
  if object.metadata.deletionTimestamp then
    return {'namespaceTerminating'}
  end
end

if not marker then
  marker = ARGV[1]
  redis.call('HSET', KEYS[1], 'marker', marker)
end
local revision = redis.call('HINCRBY', KEYS[1], 'revision', 1)
local new = revision .. '-' .. marker
if ARGV[4] == 'deleted' then
  redis.call('HDEL', KEYS[3], ARGV[2])
  redis.call('ZREM', KEYS[4], ARGV[2])
else
  redis.call('HSET', KEYS[3], ARGV[2], new .. '\n' .. ARGV[5])
  redis.call('ZADD', KEYS[4], 0, ARGV[2])
end
local removed = tonumber(ARGV[11])
for i = 12, #ARGV do
  if i < 12 + removed then
    redis.call('ZREM', KEYS[6], ARGV[i])
  else
    redis.call('ZADD', KEYS[6], 0, ARGV[i])
  end
end
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[10], revision .. '-0', 't', ARGV[4], 'k', ARGV[7], 'n', ARGV[8], 'o', ARGV[6])
return {'ok', new}
