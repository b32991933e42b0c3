-- @include "expiry.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"

-- Appends a message to a lane of its target, which is made on demand. The entry id comes from the shard's counter, so that a
-- stream made again never repeats an id that a slow worker still holds. `expires`: when the message expires, if it does.
local streams_seen = {}
local function enqueue_in(lane, id, expires)
  local w = P .. 'w:' .. lane
  -- The entry is the last write: after an error the message is in no lane.
  if not streams_seen[lane] then
    if call('EXISTS', w) == 0 then
      local n = number_of_lane(lane)
      if lane ~= n then
        call('HSET', P .. 't:' .. n, F.target.has_retry_lane, '1')
      elseif call('HGET', P .. 't:' .. n, F.target.blocked_by) == 'cap' then
        call('HDEL', P .. 't:' .. n, F.target.blocked_by)
      end
      call('XGROUP', 'CREATE', w, 'g', '0', 'MKSTREAM')
    end
    streams_seen[lane] = true
  end
  local entry = new_entry()
  if expires then
    expiry.queued(id, expires, lane, entry)
  end
  call('XADD', w, entry, F.entry.message, id)
end

local function enqueue(n, id, expires)
  enqueue_in(n, id, expires)
end

local function enqueue_retry(n, id, expires)
  enqueue_in(retry_lane(n), id, expires)
end

-- Why no fresh message of a target can be queued; nil when it can.
local function lane_obstacle(n)
  local kind = call('TYPE', P .. 'w:' .. n).ok
  streams_seen[n] = kind == 'stream' or nil
  return kind ~= 'stream' and kind ~= 'none' and 'the work stream of target ' .. n .. ' is a ' .. kind or nil
end
