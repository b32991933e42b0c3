-- @include "../../shard/includes/shard.lua"

-- The live feed of a shard: the stream `feed`, a row for each transition of an event, a message, a circuit or a replay, written by the script of the
-- transition (of a replay after it: ../../replays/replay-feed.ts). It is written only while somebody watches (`watch`, see ../watch.lua); else a script
-- pays for one EXISTS. A row has no payload and no time: its id says when.
-- The rows of ../feed-row.ts:
--   `e <status> <organization> <event> <source>`: an event was stored;
--   `m <status> <organization> <message> <event> <source> <route> <destination> <attempts> <response> <error> <reason>`: a message was delivered, has failed or has ended;
--   `c <state> <organization> <route> <destination>`: a circuit;
--   `r <phase> <organization> <replay> <candidates> <queued> <skipped> <delivered> <failed> <ended otherwise> <reason>`: a replay.
-- An absent value is `-`. Of webhooks the source is the event type, the route the application, the destination the endpoint.
local feed = {}
do
  local rows_kept = 10000
  local is_watched = nil
  local attempts, short_attempt, long_attempt = nil, nil, nil

  -- What Posthorn itself sends, alerts, is not streamed.
  local function watches(org)
    if is_watched == nil then
      is_watched = call('EXISTS', P .. 'watch') == 1
    end
    return is_watched and string.byte(org) ~= 126
  end

  -- NOMKSTREAM: who watches makes the stream, with a lifetime.
  local function write(...)
    call('XADD', P .. 'feed', 'NOMKSTREAM', 'MAXLEN', '~', rows_kept, '*', '', table.concat({ ... }, ' '))
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
      route = route or n and call('HGET', P .. 't:' .. n, 'r') or '-'
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
end
