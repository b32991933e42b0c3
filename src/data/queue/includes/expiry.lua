-- @include "../../shard/includes/hints.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "time-shares.lua"
-- @include "waiting.lua"
-- @include "../../shard/includes/first-use.lua"

-- Expiry: a message that has not been delivered by its time is given up. Only messages
-- that expire have F.message.lane_entry; empty: it is in no lane. A message without F.message.expires_ms costs no call.
--
-- `exp` (time-shares.lua) has the messages that expire, by their deadline. A message leaves it when it ends, when it moves to another shard, or when a worker
-- holds it at its deadline; the script that puts a held one back adds it again. In the sorted set `waiting` the name `~x` stands for the first of them, at its time or before it, so that hints.lua need not
-- look at `exp`; promote.lua works it off. Workers of the release before delete that name, and the next message that is watched restores it.
local expiry = { mark = '~x' }
do
  local ended = { d = true, q = true, x = true, f = true, t = true, v = true }

  -- Whether the message of this status letter has ended. Its entry in a lane, if it has one still, is of no use.
  function expiry.has_ended(letter)
    return ended[letter] or false
  end

  -- Whether a message that expires at this time (F.message.expires_ms) has expired.
  function expiry.is_over(at)
    return at and tonumber(at) <= now or false
  end
end
on_first_use(expiry, function()
  local marked_at = nil

  -- The reason of the dead letter, and the error type that is noted of it: the reasons of messages to webhook endpoints are a closed list.
  function expiry.reason(org)
    if string.byte(org) == 43 then
      return 'max_retries_exceeded', 'expired'
    end
    return 'expired', nil
  end

  -- Whether a message that a worker held, and that expires `at` (ms), ends as expired with this outcome of its attempt (settle.lua): its time is over now, or
  -- before its next attempt.
  function expiry.ends_failed(at, outcome, detail, is_rejected)
    if outcome == 'r' then
      return at <= now + tonumber(detail)
    elseif outcome == 'q' then
      return at <= now and not is_rejected and (detail == 'max_retries_exceeded' or detail == 'circuit_breaker_exhausted')
    end
    return outcome == 'b' and at <= now
  end

  -- The account of a message; nil: the message is gone, or what is there is none.
  function expiry.account(id)
    local n = redis.pcall('HGET', P .. 'm:' .. id, F.message.target)
    return n and not failed(n) and time_shares.account_of_target(n) or nil
  end

  function expiry.watch(id, at)
    time_shares.add('exp', expiry.account(id), { at, id })
    at = tonumber(at)
    if marked_at and marked_at <= at then
      return
    end
    marked_at = at
    if waiting.add_sooner(expiry.mark, nil, integer(at)) then
      local first = call('ZRANGE', P .. 'exp', 0, 0, 'WITHSCORES')
      waiting.add_sooner(expiry.mark, nil, first[2])
      hints.is_sooner = hints.is_sooner or call('ZRANGE', P .. 'waiting', 0, 0)[1] == expiry.mark
    end
  end

  -- For a message that was put into a lane.
  function expiry.queued(id, at, lane, entry)
    call('HSET', P .. 'm:' .. id, F.message.lane_entry, lane .. '/' .. entry)
    expiry.watch(id, at)
  end

  -- For a message whose entry has left its lane because it has expired: promote.lua ends it.
  function expiry.left_lane(id)
    call('HSET', P .. 'm:' .. id, F.message.lane_entry, '')
    expiry.watch(id, integer(now))
  end

  -- For a message that has ended or leaves the shard.
  function expiry.forget(id)
    time_shares.remove('exp', expiry.account(id), id)
    call('HDEL', P .. 'm:' .. id, F.message.lane_entry)
  end
end)
