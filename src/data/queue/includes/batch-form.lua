-- @include "../../shard/includes/batch.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "ulid.lua"
-- @include "work.lua"
-- @include "lanes.lua"
-- @include "expiry.lua"
-- @created-on-first-use

-- Forms batches (batch.lua).

-- Takes the oldest messages of a target into a batch, up to its records and bytes, and queues that. Nothing is queued when none of their
-- records is there any more.
local function batch_form(n, layout, worker)
  local w, id = P .. 'w:' .. n, batch_id(worker)
  local limits = call('HMGET', P .. 't:' .. n, F.target.batch_records, F.target.batch_bytes)
  local bytes_limit = tonumber(limits[2])
  local taken, members, bytes, moves, left, has_guests = {}, {}, 0, 0, nil, '0'
  for _, entry in ipairs(call('XRANGE', w, '-', '+', 'COUNT', limits[1])) do
    local message = entry[2][2]
    local m = call('HMGET', P .. 'm:' .. message, F.message.event, F.message.moves, F.message.has_output, F.message.left, F.message.first_target,
      F.message.first_destination, F.message.status, F.message.expires_ms)
    local is_over = expiry.is_over(m[8])
    if is_over and not expiry.has_ended(m[7]) then
      expiry.left_lane(message)
    elseif m[1] and not expiry.has_ended(m[7]) then
      bytes = bytes + call('STRLEN', P .. 'e:' .. m[1])
      if #members > 0 and bytes > bytes_limit then
        break
      end
      members[#members + 1] = message .. ' ' .. m[1] .. (m[3] and ' y;' or ';')
      moves = math.max(moves, tonumber(m[2] or '0'))
      has_guests = (m[5] or m[6]) and '1' or has_guests
      left = m[4] and (left and left .. ' ' .. m[4] or m[4]) or left
      call('HSET', P .. 'm:' .. message, F.message.batch, id)
    end
    taken[#taken + 1] = entry[1]
  end
  call('XDEL', w, unpack(taken))
  if call('XLEN', w) == 0 then
    call('DEL', w)
  end
  call('HDEL', P .. 't:' .. n, F.target.batch_counted_entry, F.target.batch_counted_bytes)
  if #members == 0 then
    return
  end
  call('SET', P .. 'b:' .. id, layout .. '\n' .. table.concat(members))
  call('HSET', P .. 'm:' .. id, F.message.event, batch_marker, F.message.target, n, F.message.status, 'p', F.message.max_attempts, '1',
    F.message.moves, moves, F.message.has_guests, has_guests,
    F.message.index_stamp, integer(now) .. '-' .. counter())
  if left then
    call('HSET', P .. 'm:' .. id, F.message.left, left)
  end
  call('SADD', P .. 'bs:' .. n, id)
  enqueue_retry(n, id)
end

-- Up to `count` batches as {lane, entry}: those that wait to be tried again, then new ones. Returns also whether there are no
-- more, and when (ms) the next will be complete, nil when no message waits.
local function batch_read(n, has_retries, layout, count, worker)
  local lane, found = retry_lane(n), {}
  local function take()
    for _, entry in ipairs(read_lane(lane, count - #found) or {}) do
      found[#found + 1] = { lane, entry }
    end
  end
  if has_retries then
    take()
  end
  local is_ready, due = batch_ready(n)
  while is_ready and #found < count do
    batch_form(n, layout, worker)
    take()
    is_ready, due = batch_ready(n)
  end
  return found, #found < count, due
end
