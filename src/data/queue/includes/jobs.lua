-- @include "../../shard/includes/shard.lua"
-- @include "expiry.lua"

-- Collects jobs for a worker. Reply: {targets, jobs, texts}; target {number, org, route, destination, revision of its setting or
-- '', generation of its circuit, 1 when its attempts count as slow, 1 when that setting gives out one message at a time, in order}; jobs one text with a line for each: lane, entry, message, attempts, max attempts, event,
-- attempts made elsewhere or '', destination before the failover or '', why it moved or '', 1 when the output of a transform is kept for it or '',
-- transform of its subscription or ''; of a batch the event is `*`; texts of the events in the order in which the jobs name them, each once, '' when one is gone or
-- too large to add.
local job_bytes_limit = 2097152
-- As many events of this size as one call gives out stay within the limit.
local surely_small = 32768
local job_targets, job_lines, job_events = {}, {}, {}
local known_targets, known_events = {}, {}

local function job_target(n, org, route, destination, revision, circuit, is_slow, in_order)
  if not known_targets[n] then
    known_targets[n] = true
    job_targets[#job_targets + 1] = { n, org, route, destination, revision or '', circuit or '0', is_slow and '1' or '0', in_order and '1' or '0' }
  end
end

-- The part of a job's line that only a message has which has moved.
local function moved_part(key, attempts_elsewhere)
  local m = call('HMGET', key, F.message.first_target, F.message.first_destination, F.message.move_reason)
  local first = m[2] or m[1] and call('HGET', P .. 't:' .. m[1], F.target.destination) or ''
  return attempts_elsewhere .. ' ' .. first .. ' ' .. (m[3] or '')
end

-- Returns how many attempts it has behind it; nil when the message's record is gone or has ended, or, of one that is `unheld`, it has expired: the entry is
-- then of no use.
local function add_job(lane, entry, id, unheld)
  local key = P .. 'm:' .. id
  local m = call('HMGET', key, F.message.event, F.message.attempts, F.message.max_attempts, F.message.attempts_before_move, F.message.has_output,
    F.message.transform, F.message.status, F.message.expires_ms)
  local event, attempts = m[1], m[2] or '0'
  if not event or expiry.has_ended(m[7]) then
    return nil
  end
  if unheld and expiry.is_over(m[8]) then
    expiry.left_lane(id)
    return nil
  end
  call('HSET', key, F.message.status, 'a')
  job_lines[#job_lines + 1] = lane .. ' ' .. entry .. ' ' .. id .. ' ' .. attempts .. ' ' .. (m[3] or '1') .. ' ' .. event .. ' '
    .. (m[4] and moved_part(key, m[4]) or '  ') .. (m[5] and ' 1 ' or '  ') .. (m[6] or '')
  if event ~= batch_marker and not known_events[event] then
    known_events[event] = true
    job_events[#job_events + 1] = event
  end
  return attempts
end

-- What would exceed the limit is left out, and read by itself.
local function texts_of_events()
  local texts, names, places, bytes = {}, {}, {}, 0
  if #job_events == 0 then
    return texts
  end
  -- What an unfinished event is counted with (unfinished-state.lua) has its text and more.
  local counted = call('HMGET', P .. 'ue', unpack(job_events))
  for k = 1, #job_events do
    local name = P .. 'e:' .. job_events[k]
    local size = tonumber(string.match(counted[k] or '', ' (%d+)$'))
    if not size or size > surely_small then
      size = redis.pcall('STRLEN', name)
    end
    texts[k] = ''
    if not failed(size) and bytes + size <= job_bytes_limit then
      bytes = bytes + size
      names[#names + 1], places[#places + 1] = name, k
    end
  end
  for first = 1, #names, 16 do
    local last = math.min(#names, first + 15)
    for k, text in ipairs(call('MGET', unpack(names, first, last))) do
      texts[places[first + k - 1]] = text or ''
    end
  end
  return texts
end

local function jobs_reply()
  return job_targets, table.concat(job_lines, '\n'), texts_of_events()
end
