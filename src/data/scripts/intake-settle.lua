#!lua flags=allow-oom
-- Says what has become of an event that was claimed.
--
-- KEYS: see includes/intake.lua.
-- ARGV[1] event, ARGV[2] mark or '', ARGV[3] window in milliseconds, ARGV[4] month, ARGV[5] number of messages, ARGV[6] '1' when messages are
-- counted, ARGV[7] 'stored' (by whomever), 'failed' (it is not stored)
-- Reply: 1.
-- @include "includes/intake.lua"

local event, mark, month, outcome = ARGV[1], ARGV[2], ARGV[4], ARGV[7]
local messages, is_counted = tonumber(ARGV[5]), ARGV[6] == '1'

local key, state, ms, claimed
if mark ~= '' then
  key, state, ms, claimed = find_mark(mark, tonumber(ARGV[3]))
end
local is_ours = key and claimed == event

if outcome == 'failed' then
  -- The mark keeps naming the event: whoever sends it again stores it under this id, if it is not there.
  if is_counted and (mark == '' or (is_ours and state == 'c')) then
    give_back(event, month, messages)
  end
  if is_ours and state == 'c' then
    set_mark(key, mark, 'r', ms, event)
  end
  return 1
end
if is_ours and state ~= 'a' then
  if state == 'r' and is_counted then
    reserve(event, month, messages)
  end
  set_mark(key, mark, 'a', ms, event)
end
return 1
