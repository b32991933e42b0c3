-- @include "ends.lua"
-- @include "../../shard/includes/hints.lua"
-- @include "../../shard/includes/shard.lua"
-- @created-on-first-use

-- What Posthorn's own events are made of: entries of the stream `ends` at targets whose organization has a source for them (F.target.has_own_events).
-- F.ends has their fields. The route is in own_route, a name that readers of the release before pass over. The kind is one of: q a dead letter, o a
-- circuit that opens, c one that closes, d a webhook endpoint that was disabled, w one that soon will be, r a replay that has ended, m a step of the messages
-- of a month, s a signing secret that was rotated. The last three have `-` as own_route, their subject as destination and their data as details.
--
-- `oe:<organization>` hash, by kind: `<minute> <entries in it> <left out since the last entry>`; of targets that no worker has configured with `?` behind the
-- kind: whoever reads such an entry finds out whether anybody wants it (own-event-payload.ts), so that it takes none of the entries of others.
local own_per_minute = 20
local own_kept_ms = 86400000

local function keep_own(key, ms)
  if call('PTTL', key) < ms then
    call('PEXPIRE', key, integer(ms))
  end
end

-- `is_unknown`: no worker has ever configured the target.
local function note_own(kind, org, route, destination, id, reason, hop, is_unknown)
  local key = P .. 'oe:' .. org
  local minute = integer(math.floor(now / 60000))
  local field = is_unknown and kind .. '?' or kind
  local noted, count, left = string.match(call('HGET', key, field) or '', '^(%d+) (%d+) (%d+)$')
  count = noted == minute and tonumber(count) or 0
  if count >= own_per_minute then
    call('HSET', key, field, minute .. ' ' .. integer(count) .. ' ' .. integer(left + 1))
    return
  end
  call('HSET', key, field, minute .. ' ' .. integer(count + 1) .. ' 0')
  keep_own(key, own_kept_ms)
  hints.ends = 1
  call('XADD', P .. 'ends', 'MAXLEN', '~', ends_kept, new_entry(), F.ends.organization, org, F.ends.own_route, route,
    F.ends.destination, destination, F.ends.at_ms, integer(now), F.ends.kind, kind, F.ends.count, 1, F.ends.message, id,
    F.ends.details, reason, F.ends.omitted, left or '0',
    unpack((hop or '') ~= '' and { F.ends.hops, hop } or is_unknown and { F.ends.is_unknown, '1' } or {}))
end
