-- @include "../../intake/includes/intake.lua"

-- What is known of the replays of an organization, in the slot in which its messages are counted:
--   replays          hash: identity → `<version> <JSON>` (../replay-state.ts)
--   replays-running  set of identities that have a place among the running ones
--   replays-ended    sorted set of identities by when they ended; they are kept for 90 days, at most 1,000 of them
--   replay:<identity>  set of the messages that it has queued and not yet seen end
local states, running, by_end = P .. 'replays', P .. 'replays-running', P .. 'replays-ended'
local ended_kept_ms = 7776000000
local max_ended = 1000

local function version_of(identity)
  local state = call('HGET', states, identity)
  return state and tonumber(string.match(state, '^%d+')) or 0
end

local function open_of(identity)
  return P .. 'replay:' .. identity
end

-- One ends, so a few steps keep the bounds.
local function forget_old()
  for _ = 1, 8 do
    local oldest = call('ZRANGE', by_end, 0, 0, 'WITHSCORES')
    if not oldest[1] or (tonumber(oldest[2]) > now - ended_kept_ms and call('ZCARD', by_end) <= max_ended) then
      return
    end
    call('ZREM', by_end, oldest[1])
    call('HDEL', states, oldest[1])
  end
end
