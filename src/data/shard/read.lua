#!lua flags=no-writes
-- Reads events and messages.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] `e` an event, `d` the messages of an event, `m` messages, `l` status letters of messages, `n` how messages have ended, `s` messages with
-- the beginning of their event, `h` events without payload, `v` the same with their messages, `w` whole events, `f` the results
-- of the filters of an event; [2]… keys, for `s` after how many bytes of payload are enough.
-- Reply: for `e` event_view; for `d` {event_view, {key, message_view} …}; both nil when there is no such event; for `m` per key
-- message_view; for `l` per key {letter, shard where the message is now or ''}; for `n` per key the same and, of one that has ended, its dead-letter reason or ''; for `s` per key {message_view, text of the event, bytes
-- of its payload} or, without its event, {message_view}; for `h` per key {text of the event that
-- ends before its payload, bytes of that}; for `f` {organization, text} (packed-results.ts); nil in the place of one that is not there.
-- @include "includes/shard.lua"
-- @include "includes/view.lua"
-- @include "includes/packed.lua"

-- Most messages of an event that are shown, the first ones.
local max_messages = 1000
local max_text_bytes = 262144

local reply = {}
if ARGV[1] == 'm' then
  for k = 2, #ARGV do
    reply[k - 1] = message_view(ARGV[k]) or false
  end
  return reply
end
if ARGV[1] == 'l' then
  for k = 2, #ARGV do
    local m = call('HMGET', P .. 'm:' .. ARGV[k], F.message.status, F.message.shard)
    reply[k - 1] = m[1] and { m[1], m[1] == 'm' and m[2] or '' } or false
  end
  return reply
end
if ARGV[1] == 'n' then
  for k = 2, #ARGV do
    local m = call('HMGET', P .. 'm:' .. ARGV[k], F.message.status, F.message.shard, F.message.end_stamp, F.message.dead_letter_reason)
    reply[k - 1] = m[1] and { m[1], m[1] == 'm' and m[2] or '', m[3] and (m[4] or '') or nil } or false
  end
  return reply
end
if ARGV[1] == 's' then
  for k = 3, #ARGV do
    local view = message_view(ARGV[k])
    local event = view and call('HGET', P .. 'm:' .. ARGV[k], F.message.event)
    reply[k - 2] = view and { view, event_beginning(event, tonumber(ARGV[2])) } or false
  end
  return reply
end
if ARGV[1] == 'f' then
  local pack = packed.read(packed.name_of(ARGV[2]))
  return pack and { pack.org, pack.text }
end
if ARGV[1] == 'w' then
  local bytes = 0
  for k = 2, #ARGV do
    bytes = bytes + call('STRLEN', P .. 'e:' .. ARGV[k])
    if k > 2 and bytes > max_text_bytes then
      break
    end
    reply[k - 1] = call('GET', P .. 'e:' .. ARGV[k])
  end
  return reply
end
if ARGV[1] == 'v' then
  for k = 2, #ARGV do
    reply[k - 1] = event_head_view(ARGV[k]) or false
  end
  return reply
end
if ARGV[1] == 'h' then
  for k = 2, #ARGV do
    local text, size = event_beginning(ARGV[k], 0)
    reply[k - 1] = text and { text, size } or false
  end
  return reply
end
local event, ids = event_view(ARGV[2])
if ARGV[1] == 'e' or not event then
  return event
end
reply[1] = event
for k = 1, math.min(#ids, max_messages) do
  local id = ids[k]
  local pack = packed.is_pack(id) and packed.read(id)
  local view = not pack and message_view(id)
  if pack then
    for _, result in ipairs(packed.results(pack, 0, max_messages + 1 - #reply)) do
      reply[#reply + 1] = { packed.member(id, result[1]), packed.view(pack, result) }
    end
  elseif view then
    reply[#reply + 1] = { id, view }
  end
end
return reply
