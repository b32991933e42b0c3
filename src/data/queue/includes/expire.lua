-- @include "complete-end.lua"
-- @include "../../shard/includes/apart.lua"
-- @include "expiry.lua"
-- @include "lanes.lua"
-- @include "leave-batch.lua"
-- @include "leave-lane.lua"
-- @include "retries.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "time-shares.lua"
-- @include "waiting.lua"
-- @include "bury.lua"

-- Ends up to 100 messages that have expired, wherever they wait (expiry.lua). Returns how many.
local expire_messages
do
  local max_expired = 100
  -- A member of a batch that a worker holds is looked at again after so long.
  local batch_again_ms = 1000
  -- An entry that a worker of the release before has made is looked for in the lanes: in so many of their entries, for so many messages per call.
  local max_looked_at, looks = 1000, 8

  local function search_lanes(n, id, event)
    looks = looks - 1
    for _, lane in ipairs({ n, retry_lane(n) }) do
      for _, found in ipairs(unread(lane, max_looked_at)) do
        if found[2][2] == id then
          return leave_lane(lane, found[1], event)
        end
      end
    end
  end

  -- Takes a message out of `due` or its lane. Scripts that read an entry which was not found drop it (expiry.has_ended).
  local function take_out(n, id, stands_in, event)
    if retries.remove(n, id) or stands_in == '' then
      return
    end
    local lane, entry = string.match(stands_in or '', '^(%d+r?)/(.+)$')
    if not (lane and leave_lane(lane, entry, event)) and looks > 0 then
      search_lanes(n, id, event)
    end
  end

  local function expire_member(id, batch, org)
    local reason = expiry.reason(org)
    if leave_batch(id, batch, reason) == 'a' then
      expiry.watch(id, integer(now + batch_again_ms))
    end
  end

  local function expire_message(id)
    local m = call('HMGET', P .. 'm:' .. id, F.message.status, F.message.target, F.message.batch, F.message.lane_entry, F.message.event)
    local org = m[2] and call('HGET', P .. 't:' .. m[2], F.target.organization)
    -- A message that a worker holds is passed over: settle.lua ends it, or the script that puts it back watches it again.
    if org and (m[1] == 'p' or m[1] == 'r') then
      if m[3] then
        expire_member(id, m[3], org)
      else
        take_out(m[2], id, m[4], m[5])
        bury(id, org, expiry.reason(org))
      end
    end
  end

  local function put_back(id)
    if not complete_end(id) then
      time_shares.add('exp', expiry.account(id), { integer(now + apart.again_ms), id })
    end
  end

  function expire_messages()
    time_shares.index_more('exp', expiry.account)
    local ids = time_shares.take('exp', max_expired, expiry.account)
    for _, id in ipairs(ids) do
      apart.run(expire_message, put_back, id)
    end
    local first = call('ZRANGE', P .. 'exp', 0, 0, 'WITHSCORES')
    if first[2] then
      waiting.add(expiry.mark, nil, first[2])
    else
      call('ZREM', P .. 'waiting', expiry.mark)
    end
    return #ids
  end
end
