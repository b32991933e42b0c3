#!lua flags=allow-oom
-- Cancels messages that wait: each becomes a dead letter with the reason `cancelled`. Of one that a worker holds, or that is a member of a batch, the
-- cancel is noted (cancelled.lua); it ends instead of being tried again.
--
-- KEYS: see ../shard/includes/shard.lua; the shard is the one where the messages are now.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; who cancels, a name without line feeds; messages {id, place:
-- `<lane>/<entry>` where it is in a lane, or '' for not known}.
-- Reply: per message `done` cancelled, or it was before; `noted`; `ended` it had ended; `gone` the organization has no such message here; `moved` it is in
-- another shard, or on its way there; or where it is to be looked for: `seek <target>`, with ` r` when the target has a lane of retries.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/count.lua"
-- @include "../queue/includes/status-counts.lua"
-- @include "../queue/includes/unfinished.lua"
-- @include "../queue/includes/cancelled.lua"
-- @include "../queue/includes/retries.lua"
-- @include "../queue/includes/leave-batch.lua"
-- @include "../queue/includes/leave-lane.lua"
-- @include "../../redis/scripts/includes/json.lua"
-- @include "../queue/includes/complete-end.lua"
-- @include "../shard/includes/apart.lua"
-- @include "../queue/includes/bury.lua"

local asked = decoded(ARGV[1])
local org, who = asked.org, asked.who
-- The script that gives a message its last stamp usually queues it, too: its entry has one of the next numbers of the shard.
local entries_near = 4

-- The entry of a message between two ids of a lane; nil: it is not there.
local function entry_between(lane, id, first, last, count)
  local entries = redis.pcall('XRANGE', P .. 'w:' .. lane, first, last, 'COUNT', count)
  if not failed(entries) then
    for _, entry in ipairs(entries) do
      if entry[2][2] == id then
        return entry[1]
      end
    end
  end
  return nil
end

-- The lane and the entry of a message that waits in a lane of target n; nil: it is to be looked for.
local function place_in_lanes(id, n, stamp, place, has_retries)
  local lane, entry = string.match(place, '^(%d+r?)/(.+)$')
  if lane and number_of_lane(lane) == n and entry_between(lane, id, entry, entry, 1) then
    return lane, entry
  end
  local number = string.match(stamp or '', '-(%d+)$')
  if not number then
    return nil
  end
  for _, each in ipairs(has_retries and { n, retry_lane(n) } or { n }) do
    local found = entry_between(each, id, number, '+', entries_near)
    if found then
      return each, found
    end
  end
  return nil
end

local function cancel(id, place)
  local key = P .. 'm:' .. id
  local m = call('HMGET', key, F.message.target, F.message.status, F.message.event, F.message.dead_letter_reason, F.message.batch,
    F.message.index_stamp, F.message.move_stamp, F.message.lane_entry)
  local n, state = m[1], m[2]
  local t = n and call('HMGET', P .. 't:' .. n, F.target.organization, F.target.has_retry_lane) or {}
  if t[1] ~= org then
    return 'gone'
  elseif state == 'm' then
    return 'moved'
  elseif state == 'q' and m[4] == cancelled.reason then
    return 'done'
  elseif state ~= 'p' and state ~= 'r' and state ~= 'a' then
    return 'ended'
  elseif state == 'a' or m[5] then
    cancelled.note(id, who)
    if m[5] then
      leave_batch(id, m[5], cancelled.reason)
    end
    return 'noted'
  end
  local due, lane, entry = call('ZSCORE', P .. 'due', n .. ' ' .. id), nil, nil
  if not due then
    -- A place that a search has found comes first: a worker that supports no deadlines leaves the noted entry as it was.
    lane, entry = place_in_lanes(id, n, m[7] or m[6], place ~= '' and place or m[8] or '', t[2])
    if not lane then
      return 'seek ' .. n .. (t[2] and ' r' or '')
    end
  end
  cancelled.note(id, who)
  if due then
    retries.remove(n, id)
  end
  local is_done, trouble = pcall(bury, id, org, cancelled.reason)
  local has_ended = is_done or complete_end(id)
  if due and not has_ended then
    retries.restore(n, id, due)
  elseif lane and has_ended then
    leave_lane(lane, entry, m[3])
  end
  if not is_done then
    error(trouble, 0)
  end
  return 'done'
end

local outcomes = {}
local function nothing_to_put_back() end
for k, message in ipairs(asked.messages) do
  apart.run(function()
    outcomes[k] = cancel(message.id, message.place)
  end, nothing_to_put_back)
end
retries.write()
counters.write()
write_status_counts()
write_unfinished()
ring_woken()
return apart.reply(outcomes)
