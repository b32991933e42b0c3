#!lua flags=allow-oom
-- Notes an alert to a channel as its last attempt has left it, before the earlier ones of the channel.
--
-- KEYS[1] hash: channel -> ms of the last arrival, [2] hash: channel -> lines `<message> <json>`, the newest first.
-- ARGV[1] channel, [2] message, [3] the alert as JSON, [4] most lines, [5] when it arrived in ms, or nothing.
-- Reply: 1.
local call = redis.call

local begin = ARGV[2] .. ' '
local lines = {begin .. ARGV[3]}
for line in string.gmatch(call('HGET', KEYS[2], ARGV[1]) or '', '[^\n]+') do
  if #lines < tonumber(ARGV[4]) and string.sub(line, 1, #begin) ~= begin then
    lines[#lines + 1] = line
  end
end
call('HSET', KEYS[2], ARGV[1], table.concat(lines, '\n'))
if ARGV[5] ~= '' then
  call('HSET', KEYS[1], ARGV[1], ARGV[5])
end
return 1
