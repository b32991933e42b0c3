#!lua flags=allow-oom
-- Notes an alert to a channel as its last attempt has left it, before the earlier ones of the channel.
--
-- KEYS[1] hash of the organization: channel → ms of the last arrival, [2] text of the channel: lines `<message> <json>`, the newest first, [3] sorted set of
-- the organization: channel → ms of its last attempt.
-- ARGV[1] channel, [2] message, [3] the alert as JSON, [4] number of lines that are kept, [5] for how long in ms, [6] end of the attempt in ms, [7] 1: the
-- alert has arrived.
-- Reply: 1.
local call = redis.call

local begin = ARGV[2] .. ' '
local lines = { begin .. ARGV[3] }
for line in string.gmatch(call('GET', KEYS[2]) or '', '[^\n]+') do
  if #lines < tonumber(ARGV[4]) and string.sub(line, 1, #begin) ~= begin then
    lines[#lines + 1] = line
  end
end
call('SET', KEYS[2], table.concat(lines, '\n'), 'PX', ARGV[5])
call('ZADD', KEYS[3], ARGV[6], ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[3], '-inf', tonumber(ARGV[6]) - tonumber(ARGV[5]))
call('PEXPIRE', KEYS[3], ARGV[5])
if ARGV[7] == '1' then
  call('HSET', KEYS[1], ARGV[1], ARGV[6])
end
return 1
