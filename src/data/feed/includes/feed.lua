-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/first-use.lua"

-- The live feed of a shard: the stream `feed`, a row for each transition of an event, a message, a circuit or a replay, written by the script of the
-- transition (of a replay after it: ../../replays/replay-feed.ts). It is written only while somebody watches (`watch`, see ../watch.lua); else a script
-- pays for one EXISTS. A row has no payload and no time: its id says when.
-- The rows of ../feed-row.ts:
--   `e <status> <organization> <event> <source>`: an event was stored;
--   `m <status> <organization> <message> <event> <source> <route> <destination> <attempts> <response> <error> <reason>`: a message was delivered, has failed or has ended;
--   `c <state> <organization> <route> <destination>`: a circuit;
--   `r <phase> <organization> <replay> <candidates> <queued> <skipped> <delivered> <failed> <ended otherwise> <reason>`: a replay.
-- An absent value is `-`. Of webhooks the source is the event type, the route the application, the destination the endpoint.
--
-- Organizations share the feed. Of the rows that leave it, the oldest 200 at a time, each organization keeps up to 500 in the stream `feed-old`, under the
-- same ids; after 5,000 that were kept it may keep 500 again. So rows of an organization with few stay, whatever others write. `feed-old` has no more rows than the feed.
-- The hash `feed-moved` counts the rows kept by organization, and under `*` all. The hash `feed-lost` has by organization its last row that was not kept; under `-` a row
-- before which rows of any organization may be gone; and under `first` the row with which the feed has begun since rows last left it: when the feed begins with
-- another one, workers of the release before have trimmed it. ../feed-page.lua reads all of that.
local feed = {}
on_first_use(feed, function()
  if call('EXISTS', P .. 'watch') == 0 then
    local function nothing() end
    feed.attempt, feed.event, feed.message, feed.circuit, feed.replay = nothing, nothing, nothing, nothing, nothing
    return
  end
  local rows_kept, rows_moved = 10000, 200
  local kept_per_round, kept_of_organization = 5000, 500
  local written = 0
  local attempts, short_attempt, long_attempt = nil, nil, nil

  -- What Posthorn itself sends, alerts, is not streamed.
  local function watches(org)
    return string.byte(org) ~= 126
  end

  -- Removes up to 200 rows of a stream, the oldest first. Returns them. With `more` 1 it also returns the next row, which stays.
  local function take_oldest(stream, more)
    local rows = call('XRANGE', P .. stream, '-', '+', 'COUNT', rows_moved + more)
    local first = more > 0 and table.remove(rows)[1] or nil
    local ids = {}
    for k, row in ipairs(rows) do
      ids[k] = row[1]
    end
    call('XDEL', P .. stream, unpack(ids))
    return rows, first
  end

  -- Adds rows that have left the feed to `feed-old`, as far as their organizations may keep them. Returns by organization its last row that is lost.
  local function keep(rows)
    local kept, of_organization, lost = 0, {}, {}
    for _, row in ipairs(rows) do
      local org = string.match(row[2][2], '^%S+ %S+ %+?(%S+)')
      if org then
        local count = of_organization[org] or tonumber(call('HGET', P .. 'feed-moved', org) or '0')
        -- The clock may have been set back since the feed before this one.
        if count < kept_of_organization and not failed(redis.pcall('XADD', P .. 'feed-old', row[1], '', row[2][2])) then
          of_organization[org], kept = count + 1, kept + 1
        else
          lost[org] = row[1]
        end
      end
    end
    for org, count in pairs(of_organization) do
      call('HSET', P .. 'feed-moved', org, count)
    end
    if call('HINCRBY', P .. 'feed-moved', '*', kept) >= kept_per_round then
      call('DEL', P .. 'feed-moved')
    end
    return lost
  end

  local function make_room()
    if call('XLEN', P .. 'feed') < rows_kept + rows_moved / 2 then
      return
    end
    local rows, first = take_oldest('feed', 1)
    local gone = { 'first', first }
    local function lose(name, id)
      gone[#gone + 1] = name
      gone[#gone + 1] = id
    end
    if call('HGET', P .. 'feed-lost', 'first') ~= rows[1][1] then
      call('DEL', P .. 'feed-old')
      lose('-', rows[1][1])
    elseif call('XLEN', P .. 'feed-old') > rows_kept then
      lose('-', table.remove(take_oldest('feed-old', 0))[1])
    end
    for org, id in pairs(keep(rows)) do
      lose(org, id)
    end
    call('HSET', P .. 'feed-lost', unpack(gone))
    local left_ms = call('PTTL', P .. 'feed')
    for _, name in ipairs(left_ms > 0 and { 'feed-old', 'feed-moved', 'feed-lost' } or {}) do
      call('PEXPIRE', P .. name, left_ms)
    end
  end

  -- NOMKSTREAM: who watches makes the stream, with a lifetime.
  local function write(...)
    if written % (rows_moved / 2) == 0 then
      make_room()
    end
    written = written + 1
    call('XADD', P .. 'feed', 'NOMKSTREAM', '*', '', table.concat({ ... }, ' '))
  end

  -- The longest head of an event has fewer bytes (accept.lua).
  local function source_of(event)
    return string.match(call('GETRANGE', P .. 'e:' .. event, 0, 511), '^%S+ %S+ %S+ (%S+)') or '-'
  end

  -- Status of the response and letter of the error, of the short form of an attempt or of its long one (../../shard/attempt-record.ts).
  local function outcome()
    if short_attempt and short_attempt ~= '' then
      return string.match(short_attempt, '^%w+ %d+ (%d+) (%S)')
    end
    return string.match(long_attempt or '', '^%[%d+,[%d.]+,(%d+)'), '-'
  end

  -- The attempt that ends what follows, by its number; without it no attempt does.
  function feed.attempt(number, short, long)
    attempts, short_attempt, long_attempt = number, short, long
  end

  function feed.event(org, event, source, status)
    if watches(org) then
      write('e', status, org, event, source == '' and '-' or source)
    end
  end

  -- `n`: the target of the message, `route`: where the message has none.
  function feed.message(status, org, id, event, n, destination, reason, route)
    if watches(org) then
      local response, err = outcome()
      route = route or n and call('HGET', P .. 't:' .. n, F.target.route) or '-'
      write('m', status, org, id, event, source_of(event), route, destination == '' and '-' or destination, attempts or '-', response or '-', err or '-', reason or '-')
    end
  end

  function feed.circuit(state, org, route, destination)
    if watches(org) then
      write('c', state, org, route, destination)
    end
  end

  -- The counts and the reason follow.
  function feed.replay(phase, org, ...)
    if watches(org) then
      write('r', phase, org, ...)
    end
  end
end)
