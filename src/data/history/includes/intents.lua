-- @include "../../intake/includes/intake.lua"

-- What shall be done to several messages, in the slot in which an organization's messages are counted:
--   intents      hash: intent → `<month> <messages counted> <what>`, until it is carried out
--   outcomes     hash: intent → outcome, for a day; outcomes-by  the sorted set of these by when they ended
local open, outcomes, by_time = P .. 'intents', P .. 'outcomes', P .. 'outcomes-by'
local outcome_kept_ms = 86400000

local function what_of(noted)
  return (string.match(noted, '^%S+ %d+ (.*)$'))
end

local function outcome_of(intent)
  local ended = tonumber(call('ZSCORE', by_time, intent) or '-1')
  return ended > now - outcome_kept_ms and call('HGET', outcomes, intent) or nil
end
