#!lua flags=no-writes
-- Reads messages of an archive with their events and attempts.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; the stamps after and last: of the message before the first one, and of the last one; max_messages;
-- max_bytes: the reply ends with the message that reaches them.
-- Reply: {stamp of the last one or '' at the end, then per message {key, message_view, hash of attempts in their long form, text of the event or ''}}.
-- @include "../shard/includes/packed.lua"
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/view.lua"
-- @include "../../redis/scripts/includes/json.lua"

local range = decoded(ARGV[1])
local limit = range.max_messages
local entries = call('XRANGE', P .. 'fin:' .. range.org, '(' .. range.after, range.last, 'COUNT', limit)
local reply, bytes, next_stamp = { '' }, 0, ''
for k, entry in ipairs(entries) do
  local id = entry[2][2]
  local view = message_view(id)
  if view then
    local attempts = call('HGETALL', P .. 'a:' .. id)
    local text = call('GET', P .. 'e:' .. packed.event_of(id)) or ''
    bytes = bytes + #text
    for _, part in ipairs(attempts) do
      bytes = bytes + #part
    end
    reply[#reply + 1] = { id, view, attempts, text }
  end
  next_stamp = entry[1]
  if bytes >= range.max_bytes or (k == #entries and k == limit) then
    reply[1] = next_stamp
    break
  end
end
return reply
