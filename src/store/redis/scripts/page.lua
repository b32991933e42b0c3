-- One page of the objects of a kind, in the order of their members, with the position of the log at that moment.
--
-- KEYS[1] meta            hash: marker, revision
-- KEYS[2] changes         stream, entry ids <revision>-0
-- KEYS[3] objects of the kind       hash: member -> <version>\n<object>
-- KEYS[4] names of the kind         sorted set, all scores 0: members
-- ARGV[1] by name (namedArgument in src/redis/script.ts): marker to take when the store has none; lowest and highest member, as ZRANGEBYLEX takes them;
--   max_objects
--
-- Returns {marker, revision, oldest revision in the log or -1, members, values}.
-- @include "../../../redis/scripts/includes/json.lua"

local page = decoded(ARGV[1])
local marker = redis.call('HGET', KEYS[1], 'marker')
if not marker then
  marker = page.marker
  redis.call('HSET', KEYS[1], 'marker', marker)
end
local revision = tonumber(redis.call('HGET', KEYS[1], 'revision') or '0')
local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)
local oldestRevision = -1
if oldest[1] then
  oldestRevision = tonumber(string.match(oldest[1][1], '^%d+'))
end
local members = {}
local values = {}
if page.max_objects > 0 then
  members = redis.call('ZRANGEBYLEX', KEYS[4], page.lowest, page.highest, 'LIMIT', 0, page.max_objects)
end
if #members > 0 then
  values = redis.call('HMGET', KEYS[3], unpack(members))
end
return {marker, revision, oldestRevision, members, values}
