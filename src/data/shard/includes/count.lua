-- @include "shard.lua"

-- Counts what happens, per script, and writes it once at its end (counters.write).
--
-- For ever, `k:<org>`: field source or route `<events> <last ms>` (of an application with webhooks: how often messages of events were made for it, and when the last time); destination `<deliveries> <successes> <latency ms> <last ms>
-- <attempts>`, where a delivery has ended and the latency is that of all attempts. Messages of webhooks (organizations with a +) are counted for their application (the route), too: field
-- `total:<application>`, as that of a destination.
--
-- For the analytics in tallies, from which fold-tallies.lua makes the statistics of periods: hashes `st:<org>:t<period>:<group>`, the
-- period being the number of five minutes since 1970. A group is 64 targets, or the sources and routes whose ids end alike, so that
-- a tally stays small. Its fields are a target's number and a count of F.tally, or an id and events, held_back or unsent. delivered and not_delivered have the
-- bucket of the latency behind them; each attempt of a batch counts once.
-- Tallies of organizations for webhooks also have a target's number and made; `<number>:<letter>` and events: its failed attempts by the letter of the
-- error (attempt-record.ts); `<number>!<reason>` and events: its dead letters, with the reason `filtered` what its transform held back, with `cancelled` what ended as neither delivered nor failed.
-- `st:<org>:t` is the set of an organization's tallies, `tallies` all of a shard by the time of their first count.
local function is_for_webhooks(org)
  return string.byte(org) == 43
end

local counters
do
  local tally_period_ms = 300000
  -- The buckets of core/latency-histogram.ts.
  local log_gamma = math.log(1.04 / 0.96)
  local last_bucket = 160

  local counts = {}

  local function counts_of(org)
    local c = counts[org]
    if not c then
      c = { events = {}, deliveries = {}, targets = {}, ids = {} }
      counts[org] = c
    end
    return c
  end

  -- Adds to one of the counts that are under `key`.
  local function add_to(counted, key, what, by)
    local of = counted[key]
    if not of then
      of = {}
      counted[key] = of
    end
    of[what] = (of[what] or 0) + by
  end

  local function tally_target(org, n, what, by)
    if n ~= '' then
      add_to(counts_of(org).targets, n, what, by)
    end
  end

  -- `detail` is behind the number of the target.
  local function tally_detail(org, n, detail)
    if n ~= '' then
      add_to(counts_of(org).targets, n .. detail, F.tally.events, 1)
    end
  end

  local function tally_id(org, id, what, by)
    add_to(counts_of(org).ids, id, what, by)
  end

  -- An event of a source, or one that a route has taken.
  local function count_event(org, id)
    local events = counts_of(org).events
    events[id] = (events[id] or 0) + 1
  end

  -- Counts a message to a webhook endpoint; of others nothing is counted when they are made.
  local function count_made(org, n)
    if is_for_webhooks(org) then
      tally_target(org, n, F.tally.made, 1)
    end
  end

  -- A failed attempt at a webhook endpoint.
  local function count_error(org, n, letter)
    tally_detail(org, n, ':' .. letter)
  end

  -- What became a dead letter at a webhook endpoint, or was held back by its transform.
  local function count_reason(org, n, reason)
    if is_for_webhooks(org) then
      tally_detail(org, n, '!' .. reason)
    end
  end

  -- A delivery of a route that failed before it could be sent: its schema or its transform.
  local function count_unsent(org, route)
    tally_id(org, route, F.tally.unsent, 1)
  end

  -- An event that the filter of a route has held back, or repeated ones of a source.
  local function count_held_back(org, id, by)
    tally_id(org, id, F.tally.held_back, by)
  end

  local function deliveries_of(org, destination)
    local deliveries = counts_of(org).deliveries
    local d = deliveries[destination]
    if not d then
      d = { 0, 0, 0, 0 }
      deliveries[destination] = d
    end
    return d
  end

  -- The bucket of a latency, as text, by the latency.
  local latency_buckets = {}

  local function latency_bucket(ms)
    local bucket = latency_buckets[ms]
    if not bucket then
      bucket = integer(ms <= 1 and 0 or math.min(last_bucket, math.ceil(math.log(ms) / log_gamma)))
      latency_buckets[ms] = bucket
    end
    return bucket
  end

  local function count_attempt(org, n, destination, duration_ms, has_delivered)
    duration_ms = math.floor(duration_ms + 0.5)
    local d = deliveries_of(org, destination)
    d[3], d[4] = d[3] + duration_ms, d[4] + 1
    tally_target(org, n, F.tally.duration_ms, duration_ms)
    tally_target(org, n, (has_delivered and F.tally.delivered or F.tally.not_delivered) .. latency_bucket(duration_ms), 1)
  end

  -- Another attempt was planned after one that failed.
  local function count_retried(org, n)
    tally_target(org, n, F.tally.retried, 1)
  end

  local function count_circuit_opening(org, n)
    tally_target(org, n, F.tally.circuit_openings, 1)
  end

  local function add_end(d, has_succeeded)
    d[1] = d[1] + 1
    if has_succeeded then
      d[2] = d[2] + 1
    end
  end

  -- The end of a delivery to a target: F.tally.delivered (tallied with its attempt), delivered_in_batch, failed or moved.
  local function count_end(org, n, destination, how)
    local has_succeeded = how == F.tally.delivered or how == F.tally.delivered_in_batch
    add_end(deliveries_of(org, destination), has_succeeded)
    if is_for_webhooks(org) then
      local application = call('HGET', P .. 't:' .. n, F.target.route)
      if application then
        add_end(deliveries_of(org, 'total:' .. application), has_succeeded)
      end
    end
    if how ~= F.tally.delivered then
      tally_target(org, n, how, 1)
    end
  end

  -- The names of a table, and what a hash has of them.
  local function read_fields(key, named)
    local names = {}
    for name in pairs(named) do
      names[#names + 1] = name
    end
    return names, #names > 0 and call('HMGET', key, unpack(names)) or {}
  end

  local function write_events(key, events)
    local ids, stored = read_fields(key, events)
    local fields = {}
    for k, id in ipairs(ids) do
      local before = string.match(stored[k] or '', '^(%d+)')
      fields[2 * k - 1], fields[2 * k] = id, integer(tonumber(before or '0') + events[id]) .. ' ' .. integer(now)
    end
    if #fields > 0 then
      call('HSET', key, unpack(fields))
    end
  end

  local function write_deliveries(key, deliveries)
    local ids, stored = read_fields(key, deliveries)
    local fields = {}
    for k, id in ipairs(ids) do
      local d = deliveries[id]
      local ended, successes, latency, last, attempts = string.match(stored[k] or '0 0 0 0 0', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
      last = d[4] > 0 and now or tonumber(last)
      fields[2 * k - 1] = id
      fields[2 * k] = string.format('%.0f %.0f %.0f %.0f %.0f', ended + d[1], successes + d[2], latency + d[3], last, attempts + d[4])
    end
    if #fields > 0 then
      call('HSET', key, unpack(fields))
    end
  end

  -- What was counted of an organization, by the names of its tallies, each with its fields.
  local function tallies_of(c)
    local tallies = {}
    for key, counted in pairs(c.targets) do
      local n = string.match(key, '^%d+')
      for what, by in pairs(counted) do
        add_to(tallies, integer(math.floor(tonumber(n) / 64)), key .. ' ' .. what, by)
      end
    end
    for id, counted in pairs(c.ids) do
      for what, by in pairs(counted) do
        add_to(tallies, 'e' .. string.sub(id, -1), id .. ' ' .. what, by)
      end
    end
    return tallies
  end

  local function write_tallies(org, tallies)
    local period = integer(math.floor(now / tally_period_ms))
    for group, counted in pairs(tallies) do
      local name = period .. ':' .. group
      local key = P .. 'st:' .. org .. ':t' .. name
      local names, stored = read_fields(key, counted)
      local fields, is_new = {}, false
      for k, field in ipairs(names) do
        is_new = is_new or not stored[k]
        fields[2 * k - 1], fields[2 * k] = field, integer(tonumber(stored[k] or '0') + counted[field])
      end
      call('HSET', key, unpack(fields))
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
      -- Nobody asks for the events of a period of webhooks.
      if not is_for_webhooks(org) then
        for id, events in pairs(c.events) do
          tally_id(org, id, F.tally.events, events)
        end
      end
      write_tallies(org, tallies_of(c))
    end
  end

  counters = {
    event = count_event,
    made = count_made,
    error = count_error,
    reason = count_reason,
    unsent = count_unsent,
    held_back = count_held_back,
    attempt = count_attempt,
    retried = count_retried,
    circuit_opening = count_circuit_opening,
    ended = count_end,
    write = write_counts,
  }
end
