-- Counts what happens, per script, and writes it once at its end (write_counts).
--
-- For ever, `k:<org>`: field source or route `<events> <last ms>`; destination `<deliveries> <successes> <latency ms> <last ms>
-- <attempts>`, where a delivery has ended and the latency is that of all attempts (earlier releases: no attempts, the latency of
-- one attempt per delivery). Messages of webhooks (organizations with a +) are counted for their application (the route), too: field
-- `total:<application>`, as that of a destination.
--
-- For the analytics in tallies, from which fold-tallies.lua makes the statistics of periods: hashes `st:<org>:t<period>:<group>`, the
-- period being the number of five minutes since 1970. A group is 64 targets, or the sources and routes whose ids end alike, so that
-- a tally stays small. Fields: a target's number and `o` delivered with a batch, `f` failed, `m` moved to a failover destination, `s` sum of the durations
-- of its attempts in ms, `d<bucket>` attempts that delivered, `a<bucket>` others (of a batch each attempt once); an id and `e` events, `x` filtered or repeated ones, `u` failed before they were sent.
-- `st:<org>:t` is the set of an organization's tallies, `tallies` all of a shard by the time of their first count.
local tally_period_ms = 300000
-- The buckets of core/latency-histogram.ts.
local log_gamma = math.log(1.04 / 0.96)
local last_bucket = 160

local counts = {}

local function counts_of(org)
  counts[org] = counts[org] or { events = {}, deliveries = {}, tallies = {} }
  return counts[org]
end

local function tally(org, group, field, by)
  local tallies = counts_of(org).tallies
  tallies[group] = tallies[group] or {}
  tallies[group][field] = (tallies[group][field] or 0) + by
end

local function tally_target(org, n, what, by)
  if n ~= '' then
    tally(org, whole(math.floor(tonumber(n) / 64)), n .. ' ' .. what, by)
  end
end

local function tally_id(org, id, what, by)
  tally(org, 'e' .. string.sub(id, -1), id .. ' ' .. what, by)
end

-- An event of a source, or one that a route has taken.
local function count_event(org, id)
  local events = counts_of(org).events
  events[id] = (events[id] or 0) + 1
  tally_id(org, id, 'e', 1)
end

-- A delivery of a route that failed before it could be sent: its schema or its transform.
local function count_unsent(org, route)
  tally_id(org, route, 'u', 1)
end

-- An event that the filter of a route has held back, or repeated ones of a source.
local function count_held_back(org, id, by)
  tally_id(org, id, 'x', by)
end

local function deliveries_of(org, destination)
  local deliveries = counts_of(org).deliveries
  deliveries[destination] = deliveries[destination] or { 0, 0, 0, 0 }
  return deliveries[destination]
end

local function latency_bucket(ms)
  if ms <= 1 then
    return 0
  end
  return math.min(last_bucket, math.ceil(math.log(ms) / log_gamma))
end

local function count_attempt(org, n, destination, duration_ms, has_delivered)
  duration_ms = math.floor(duration_ms + 0.5)
  local d = deliveries_of(org, destination)
  d[3], d[4] = d[3] + duration_ms, d[4] + 1
  tally_target(org, n, 's', duration_ms)
  tally_target(org, n, (has_delivered and 'd' or 'a') .. latency_bucket(duration_ms), 1)
end

-- The end of a delivery to a target: `d` delivered (tallied with its attempt), `o` delivered with a batch, `f` failed, `m` moved to a
-- failover destination after it had failed here.
local function count_end(org, n, destination, how)
  local ended = { deliveries_of(org, destination) }
  if string.sub(org, 1, 1) == '+' then
    local application = call('HGET', P .. 't:' .. n, 'r')
    ended[2] = application and deliveries_of(org, 'total:' .. application)
  end
  for _, d in ipairs(ended) do
    d[1] = d[1] + 1
    if how == 'd' or how == 'o' then
      d[2] = d[2] + 1
    end
  end
  if how ~= 'd' then
    tally_target(org, n, how, 1)
  end
end

local function write_events(key, events)
  for id, count in pairs(events) do
    local stored = string.match(call('HGET', key, id) or '', '^(%d+)')
    call('HSET', key, id, whole(tonumber(stored or '0') + count) .. ' ' .. whole(now))
  end
end

local function write_deliveries(key, deliveries)
  for id, d in pairs(deliveries) do
    local ended, successes, latency, last, attempts = string.match(call('HGET', key, id) or '0 0 0 0', '^(%d+) (%d+) (%d+) (%d+) ?(%d*)')
    if attempts == '' then
      attempts = ended
    end
    last = d[4] > 0 and now or tonumber(last)
    call('HSET', key, id, string.format('%.0f %.0f %.0f %.0f %.0f', ended + d[1], successes + d[2], latency + d[3], last, attempts + d[4]))
  end
end

local function write_tallies(org, tallies)
  local period = whole(math.floor(now / tally_period_ms))
  for group, fields in pairs(tallies) do
    local name = period .. ':' .. group
    local key = P .. 'st:' .. org .. ':t' .. name
    local is_new = false
    for field, by in pairs(fields) do
      is_new = call('HINCRBY', key, field, by) == by or is_new
    end
    if is_new then
      call('SADD', P .. 'st:' .. org .. ':t', name)
      call('ZADD', P .. 'tallies', 'NX', now, org .. ' ' .. name)
    end
  end
end

local function write_counts()
  for org, c in pairs(counts) do
    local key = P .. 'k:' .. org
    write_events(key, c.events)
    write_deliveries(key, c.deliveries)
    write_tallies(org, c.tallies)
  end
end
