-- Collects jobs for a worker. Reply: {targets, jobs, events}; target {number, org, route, destination, revision of its setting or
-- '', generation of its circuit, 1 when its attempts count as slow}; job {lane, entry, message, attempts, max attempts, event, attempts before the failover or '',
-- destination before the failover or '', why it moved or '', 1 when the output of a transform is kept for it or '', transform of its subscription or ''}; of a batch the event is `*`; event {id, stored text or '' when gone or too large to add}.
local job_bytes_limit = 2097152
local job_targets, job_list, job_events = {}, {}, {}
local known_targets, known_events, job_bytes = {}, {}, 0

local function job_target(n, org, route, destination, revision, circuit, is_slow)
  if not known_targets[n] then
    known_targets[n] = true
    job_targets[#job_targets + 1] = { n, org, route, destination, revision or '', circuit or '0', is_slow and '1' or '0' }
  end
end

-- Answers false when the message's record is gone; the entry is then of no use.
local function add_job(lane, entry, id)
  local key = P .. 'm:' .. id
  local m = call('HMGET', key, 'e', 'n', 'x', 'o', 'k', 'w', 'od', 'y', 'tf')
  local event = m[1]
  if not event then
    return false
  end
  call('HSET', key, 's', 'a')
  local first = m[7] or m[4] and call('HGET', P .. 't:' .. m[4], 'd') or ''
  job_list[#job_list + 1] = { lane, entry, id, m[2] or '0', m[3] or '1', event, m[5] or '', first, m[6] or '', m[8] and '1' or '', m[9] or '' }
  if event ~= batch_marker and not known_events[event] then
    known_events[event] = true
    job_events[#job_events + 1] = { event, P .. 'e:' .. event }
  end
  return true
end

-- Puts the texts of the events into their places; what is beyond the limit is left out and read by itself.
local function load_events()
  local first = 1
  while first <= #job_events do
    local last = math.min(#job_events, first + 15)
    local keys = {}
    for k = first, last do
      keys[#keys + 1] = job_events[k][2]
    end
    local texts = job_bytes < job_bytes_limit and call('MGET', unpack(keys)) or {}
    for k = first, last do
      local text = texts[k - first + 1] or ''
      job_bytes = job_bytes + #text
      job_events[k][2] = text
    end
    first = last + 1
  end
end
