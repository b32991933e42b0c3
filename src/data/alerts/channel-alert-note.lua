#!lua flags=allow-oom
-- Notes an alert to a channel as its last attempt has left it, before the earlier ones of the channel.
--
-- KEYS[1] hash of the organization: channel → ms of the last arrival, [2] text of the channel: lines `<message> <json>`, the newest first, [3] sorted set of
-- the organization: channel → ms of its last attempt.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): channel; message; alert (JSON); max_lines that are kept, for kept_ms; attempted_at_ms: end of the
-- attempt; has_arrived.
-- Reply: 1.
-- @include "../../redis/scripts/includes/json.lua"

local call = redis.call

local note = decoded(ARGV[1])
local begin = note.message .. ' '
local lines = { begin .. note.alert }
for line in string.gmatch(call('GET', KEYS[2]) or '', '[^\n]+') do
  if #lines < note.max_lines and string.sub(line, 1, #begin) ~= begin then
    lines[#lines + 1] = line
  end
end
call('SET', KEYS[2], table.concat(lines, '\n'), 'PX', note.kept_ms)
call('ZADD', KEYS[3], note.attempted_at_ms, note.channel)
call('ZREMRANGEBYSCORE', KEYS[3], '-inf', note.attempted_at_ms - note.kept_ms)
call('PEXPIRE', KEYS[3], note.kept_ms)
if note.has_arrived then
  call('HSET', KEYS[1], note.channel, note.attempted_at_ms)
end
return 1
