#!lua flags=allow-oom
-- Stores the outcome of an event that was claimed.
--
-- KEYS: see includes/intake.lua.
-- ARGV[1] event, ARGV[2] marks, separated by a space, or '', ARGV[3] window in milliseconds, ARGV[4] month, ARGV[5] number of messages, ARGV[6] '1' when messages are
-- counted, ARGV[7] 'stored' (by whomever), 'failed' (it is not stored)
-- Reply: 1.
-- @include "includes/intake.lua"

local event, marks, month, outcome = ARGV[1], ARGV[2], ARGV[4], ARGV[7]
local window, messages, is_counted = tonumber(ARGV[3]), tonumber(ARGV[5]), ARGV[6] == '1'

-- Moves those of the marks that name the event and are in a state of `from` to the state `to`; returns the states that were left, as text.
local function move_marks(from, to)
  local left = ''
  for mark in string.gmatch(marks, '%x+') do
    local key, state, ms, claimed = find_mark(mark, window)
    if key and claimed == event and string.find(from, state, 1, true) then
      left = left .. state
      set_mark(key, mark, to, ms, event)
    end
  end
  return left
end

if outcome == 'failed' then
  -- The marks keep naming the event: whoever sends it again stores it under this id, if it is not there.
  if (move_marks('c', 'r') ~= '' or marks == '') and is_counted then
    give_back(event, month, messages)
  end
  return 1
end
-- One that was released was given back.
if string.find(move_marks('cr', 'a'), 'r', 1, true) and is_counted then
  reserve(event, month, messages)
end
return 1
