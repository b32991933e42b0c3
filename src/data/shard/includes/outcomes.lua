-- @include "shard.lua"

-- Which messages may match what a filter asks of their attempts (../message-conditions.ts). What is not known here may match.
local outcomes = {}
do
  -- {when it began, status, letter of its error or `-`} of an attempt in its short form (../attempt-record.ts); nil of any other.
  local function attempt_of(short)
    local started, status, letter = string.match(short or '', '^(%w+) %d+ (%d+) (%S)')
    return started and { tonumber(started, 36), tonumber(status), letter }
  end

  local function is_within(ranges, status, letter)
    for _, range in ipairs(ranges) do
      if status >= range.first and status <= range.last and (status < 300 or letter ~= '-') then
        return true
      end
    end
    return false
  end

  local function may_have_failed(id, count, from, to)
    local names = {}
    for k = 1, count do
      names[k] = tostring(k)
    end
    local shorts = count > 0 and call('HMGET', P .. 'm:' .. id, unpack(names)) or {}
    for k = 1, count do
      local attempt = attempt_of(shorts[k])
      if not attempt or attempt[3] ~= '-' and attempt[1] >= from and attempt[1] <= to then
        return true
      end
    end
    return false
  end

  -- `count`: how many attempts were made.
  function outcomes.may_match(id, count, wanted)
    if wanted.attempts and (count < wanted.attempts[1] or count > wanted.attempts[2]) then
      return false
    end
    if wanted.errors or wanted.responses then
      if count == 0 then
        return false
      end
      local last = attempt_of(call('HGET', P .. 'm:' .. id, count))
      if last and (wanted.errors and not string.find(wanted.errors, last[3], 1, true) or wanted.responses and not is_within(wanted.responses, last[2], last[3])) then
        return false
      end
    end
    return not wanted.failed or may_have_failed(id, count, wanted.failed[1], wanted.failed[2])
  end

  -- Whether a message may match that ended without an attempt.
  function outcomes.may_be_unsent(wanted)
    return not (wanted.errors or wanted.responses or wanted.failed or wanted.attempts and wanted.attempts[1] > 0)
  end
end
