#!lua
-- Claims the mark of an event before the event is accepted in its shard, and counts its messages against the month. A refusal writes nothing.
-- Without allow-oom: a full Redis refuses it, as it refuses the event.
--
-- KEYS: see includes/intake.lua.
-- ARGV[1] event, ARGV[2] marks (hexadecimal, separated by a space) or '', ARGV[3] window in milliseconds, ARGV[4] month (YYYY-MM), ARGV[5] number of messages,
-- ARGV[6] how many there may be in the month, or ''
-- Reply: {'store', event, earlier, step…}: the caller stores the event under this id, which an earlier claim may have set; `earlier` is an event with the same mark
-- from before the window, or ''; {'duplicate', event}: it was accepted as this one; {'quota', step…}: it would exceed the month. step…: untold_step() of includes/intake.lua.
-- @include "includes/intake.lua"

local event, marks, month = ARGV[1], ARGV[2], ARGV[4]
local window, messages, limit = tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[6])

local function exceeds()
  return limit and messages > 0 and tonumber(call('HGET', quota, month) or '0') + messages > limit
    and not call('ZSCORE', P .. 'reserved', event)
end

-- Notes that the event is claimed again: under those of the marks that name it.
local function claim_again(first)
  for mark in string.gmatch(marks, '%x+') do
    local key, _, ms, named = find_mark(mark, window)
    if key and named == first then
      set_mark(key, mark, 'c', ms, first)
    end
  end
end

local earlier
for mark in string.gmatch(marks, '%x+') do
  local key, state, ms, first = find_mark(mark, window)
  if key and ms > now - window then
    if state == 'a' then
      return {'duplicate', first}
    end
    if state == 'r' then
      event = first
      if exceeds() then
        return {'quota', unpack(untold_step(month, limit, true))}
      end
      claim_again(first)
      if limit then
        reserve(first, month, messages)
      end
    end
    return {'store', first, '', unpack(untold_step(month, limit, false))}
  end
  earlier = earlier or first
end

if exceeds() then
  return {'quota', unpack(untold_step(month, limit, true))}
end
if limit then
  reserve(event, month, messages)
end
for mark in string.gmatch(marks, '%x+') do
  local bucket = math.floor(now / bucket_ms)
  local key = marks_key(bucket, mark)
  set_mark(key, mark, 'c', now, event)
  expire_not_before(key, (bucket + 1) * bucket_ms - now + window)
end
return {'store', event, earlier or '', unpack(untold_step(month, limit, false))}
