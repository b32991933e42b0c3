-- @include "../../shard/includes/chunks.lua"
-- @include "event-list.lua"
-- @include "index.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "unfinished.lua"
-- @include "work.lua"
-- @include "unfinished-changes.lua"

-- Events get messages, and copies in other shards: each shard that has messages of an event has a copy of it.

-- For so long what is carried twice is noticed, although what it made may be gone again.
local seen_ms = 3600000

-- Fails before the first write when messages of a target cannot be queued.
local function require_lane(org, route, destination)
  local n = call('HGET', P .. 'tn:' .. org, route .. ' ' .. destination)
  local obstacle = n and lane_obstacle(n)
  if obstacle then
    error(obstacle)
  end
end

-- Notes further messages of an event that are here. Without a count there is one.
local function event_refs(event, ids)
  if #ids > 0 then
    call('HSET', P .. 'refs', event, tonumber(call('HGET', P .. 'refs', event) or '1') + #ids)
    count_messages(event, nil, #ids)
    list_messages(event, ids)
  end
end

-- Whether a copy of the event is to be made, and chunks of its payload are not here. Where `are_lost` says that its home has lost some, the copy has none.
local function lacks_chunks(event, text, are_lost)
  if are_lost then
    return false
  end
  local token, bytes = chunks.of(text)
  return token and call('EXISTS', P .. 'e:' .. event) == 0 and not chunks.are_here(token, bytes)
end

-- Makes the copy unless it is there; `text` is that of the event at its home. From a text that is none no copy is made.
local function copy_event(event, text)
  if call('EXISTS', P .. 'e:' .. event) == 1 then
    return
  end
  local org, source, named, rest = string.match(text, '^%S+ %S+ (%S+) (%S+) %S+([^\n]*)\n(.*)$')
  if not org then
    return
  end
  local stamp = new_stamp()
  local copy = stamp .. ' * ' .. org .. ' ' .. source .. ' -' .. named .. '\n' .. rest
  local token, chunk_bytes = chunks.of(text)
  if token then
    chunks.name(token, chunk_bytes)
  end
  call('SET', P .. 'e:' .. event, copy)
  new_event(event, org, #copy + (chunk_bytes or 0))
  call('HSET', P .. 'refs', event, 0)
  index_add(P .. 'i:cp:' .. org, stamp, event)
end
