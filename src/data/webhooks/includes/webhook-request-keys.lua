-- @include "webhooks.lua"

-- What was made under a mark: hashes `mk:0` and `mk:1` of mark → numbers, one for even and one for odd days. Each lasts to the end of the day after
-- its own, so that a mark is known for a day at least.
local today = math.floor(tonumber(now[1]) / 86400)

local function marks_key(day)
  return P .. 'mk:' .. integer(day % 2)
end

local function made_under(mark)
  return mark ~= '' and (call('HGET', marks_key(today), mark) or call('HGET', marks_key(today - 1), mark)) or nil
end

local function note_made(mark, numbers)
  if mark ~= '' then
    call('HSET', marks_key(today), mark, numbers)
    call('PEXPIRE', marks_key(today), integer(((today + 2) * 86400 - tonumber(now[1])) * 1000))
  end
end
