-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/hints.lua"

-- The log of what ends at targets whose route has alerts (al in the target's hash): the stream `ends`, which src/notify reads and
-- forgets. An entry has r route, d the destination that the messages were sent to first, at when (ms), k what ended: f a message that
-- failed, s messages that were delivered, o a circuit that opens, c one that closes; n how many, m the last of the messages.
-- Entries with w are for Posthorn's own events (own-events.lua).
-- While nobody reads it the oldest go: counts of alerts are then too small.
local ends_kept = 100000
-- Successes in a row of this call, by route and destination: {route, destination, how many, last message}.
local successes = {}

local function note_end(route, destination, kind, count, id)
  local before = successes[route .. ' ' .. destination]
  successes[route .. ' ' .. destination] = nil
  if before then
    note_end(before[1], before[2], 's', before[3], before[4])
  end
  hints.ends = 1
  call('XADD', P .. 'ends', 'MAXLEN', '~', ends_kept, new_entry(),
    'r', route, 'd', destination, 'at', whole(now), 'k', kind, 'n', count, 'm', id)
end

-- Where a message of the target was sent first: it may have failed over.
local function first_destination(id, destination)
  local m = call('HMGET', P .. 'm:' .. id, 'o', 'od')
  return m[2] or m[1] and call('HGET', P .. 't:' .. m[1], 'd') or destination
end

local function note_success(id, route, destination)
  local first = first_destination(id, destination)
  local s = successes[route .. ' ' .. first] or { route, first, 0 }
  successes[route .. ' ' .. first] = s
  s[3], s[4] = s[3] + 1, id
end

local function write_successes()
  for name, s in pairs(successes) do
    successes[name] = nil
    note_end(s[1], s[2], 's', s[3], s[4])
  end
end
