-- @include "webhooks.lua"
-- @include "../../../redis/scripts/includes/json.lua"

-- Tombstones: what deleted applications, endpoints and event types were, so that the history of messages still names them. `past` is a hash: `n:<name>` → ids of
-- the event types that had the name, the newest first; of an application its name and of an endpoint its URL, by the id of a custom resource, else by
-- `<kind>:<number>:<part>` (`webhook-ids.ts`). `pt` is a sorted set of its fields by the time of the deletion (ms). Tombstones are kept for longer than any message,
-- and at most so many per organization, the newest.
local past_kept_ms, max_past, max_of_name = 90 * 86400000, 10000, 8
local prefix_of = { ap = 'app_', ep = 'ep_' }

-- Notes since when every deleted event type is known (F.webhook_control.past_since_ms): from the beginning where this release has made the first
-- application of the organization, else from now on.
local function begin_tombstones(is_first)
  if call('HEXISTS', KEYS[1], F.webhook_control.past_since_ms) == 0 then
    call('HSET', KEYS[1], F.webhook_control.past_since_ms, is_first and '0' or integer(tonumber(now[1]) * 1000))
  end
end

local function add_tombstone(field, text)
  local at = tonumber(now[1]) * 1000
  call('HSET', P .. 'past', field, text)
  call('ZADD', P .. 'pt', at, field)
  local over = call('ZRANGE', P .. 'pt', '-inf', integer(at - past_kept_ms), 'BYSCORE', 'LIMIT', 0, 100)
  local surplus = math.min(100, call('ZCARD', P .. 'pt') - max_past)
  if surplus > 0 then
    over = call('ZRANGE', P .. 'pt', 0, surplus - 1)
  end
  if #over > 0 then
    call('HDEL', P .. 'past', unpack(over))
    call('ZREM', P .. 'pt', unpack(over))
  end
end

-- What a record says of itself in history.
local function shown_of(kind, record)
  local json = decoded(string.match(record, '{.*$') or '{}')
  return kind == 'ap' and json[F.webhook_application.name] or json[F.webhook_endpoint.url]
end

local function add_record_tombstone(kind, number, record)
  local part, shown = part_of(record), shown_of(kind, record)
  if shown then
    add_tombstone(#part > 16 and prefix_of[kind] .. part or kind .. ':' .. number .. ':' .. part, shown)
  end
end

local function add_event_type_tombstone(id, name)
  local ids = { id }
  for other in string.gmatch(call('HGET', P .. 'past', F.webhook_past.event_types_of_name .. name) or '', '%S+') do
    if other ~= id and #ids < max_of_name then
      ids[#ids + 1] = other
    end
  end
  add_tombstone(F.webhook_past.event_types_of_name .. name, table.concat(ids, ' '))
end
