#!lua flags=allow-oom
-- Appends one change to the stream that keepers of webhook objects follow (`change-stream.ts`). A call that is sent again appends the change twice.
-- KEYS[1] marker, [2] sequence, [3] changes (stream).
-- ARGV[1] marker to write when there is none, [2] length to which the stream is trimmed, about; then the change keys.
local call = redis.call
call('SET', KEYS[1], ARGV[1], 'NX')
local sequence = call('INCR', KEYS[2])
if sequence == 1 then
  -- The first number is the time in microseconds: after a loss of all data no number repeats an old one.
  local time = call('TIME')
  sequence = time[1] * 1000000 + time[2]
  call('SET', KEYS[2], string.format('%.0f', sequence))
end
local fields = { F.change_entry.marker, call('GET', KEYS[1]) }
for k = 3, #ARGV do
  fields[#fields + 1] = F.change_entry.key
  fields[#fields + 1] = ARGV[k]
end
call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[2], string.format('%.0f-0', sequence), unpack(fields))
return 1
