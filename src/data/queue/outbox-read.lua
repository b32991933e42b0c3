#!lua flags=allow-oom
-- Reads what has to be carried to other shards, the oldest first; what is of no use any more is removed.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] how many at most, [2] the entry after which to begin, or '-'; or ARGV[1] 0, then the entries.
-- Reply: entries {entry, shard, kind, …}: x {event, text (or its first line: import-messages.lua says when that is not
-- enough) or '' when it is gone, targets}; w {event, text or '', from, until}; v {message, event, text, destination,
-- organization, route, first destination, hash as a flat list, hash of long attempts as a flat list, output of the transform or ''}; f {target, organization,
-- route, destination}; r, g, n {key, of n the message}; i {event, its
-- first line or ''}, with this shard.
-- @include "../shard/includes/shard.lua"
-- @include "includes/outbox.lua"
-- @include "includes/output.lua"
-- @include "includes/outbox-entries.lua"

local bytes_limit = 4194304
-- A larger text is only carried when it is asked for.
local large_bytes = 65536
local bytes, reply = 0, {}

-- '' for what is no text.
local function text_of(event)
  local text = redis.pcall('GET', P .. 'e:' .. event)
  text = type(text) == 'string' and text or ''
  bytes = bytes + #text
  return text
end

local function first_line_of(event)
  local text = redis.pcall('GETRANGE', P .. 'e:' .. event, 0, 255)
  return type(text) == 'string' and string.match(text, '^[^\n]*') or ''
end

-- In its own shard the event is there; another gets the text with the first of the entries for it.
local carried = {}
local function is_line_enough(f)
  local to = f[F.outbox.shard] .. ' ' .. f[F.outbox.event]
  if f[F.outbox.shard] == own_shard() or carried[to] then
    return true
  end
  carried[to] = true
  local length = redis.pcall('STRLEN', P .. 'e:' .. f[F.outbox.event])
  return type(length) == 'number' and length > large_bytes
end

-- The lines of an entry with their times, as they were sent.
local function lines_of(f)
  if not f[F.outbox.times] then
    return f[F.outbox.lines]
  end
  local lines, next_times = {}, string.gmatch(f[F.outbox.times] .. '\n', '([^\n]*)\n')
  for line in string.gmatch(f[F.outbox.lines], '[^\n]+') do
    local head, tail = string.match(line, '^(%S+ %S+ %S+ %d+)(.*)$')
    lines[#lines + 1] = head .. (next_times() or '') .. tail
  end
  return table.concat(lines, '\n')
end

local function read(entry, f)
  local kind, shard, event, message = f[F.outbox.kind], f[F.outbox.shard], f[F.outbox.event], f[F.outbox.message]
  if kind == 'i' then
    return { entry, own_shard(), kind, f[F.outbox.broken_event], first_line_of(f[F.outbox.broken_event]) }
  elseif kind == 'x' then
    bytes = bytes + #f[F.outbox.lines]
    return { entry, shard, kind, event, is_line_enough(f) and first_line_of(event) or text_of(event), lines_of(f) }
  elseif kind == 'w' then
    return { entry, shard, kind, event, text_of(event), f[F.outbox.walk_from], f[F.outbox.walk_until] }
  elseif kind == 'f' then
    local t = call('HMGET', P .. 't:' .. event, F.target.organization, F.target.route)
    if not t[1] then
      end_sending(entry)
      return nil
    end
    return { entry, shard, kind, event, t[1], t[2], message }
  elseif kind ~= 'v' then
    return { entry, shard, kind, event or message, message or '' }
  end
  local key = P .. 'm:' .. message
  local m = call('HMGET', key, F.message.status, F.message.outbox_entry, F.message.event, F.message.target, F.message.first_target,
    F.message.first_destination, F.message.has_output)
  local t = m[4] and call('HMGET', P .. 't:' .. m[4], F.target.organization, F.target.route) or {}
  if m[1] ~= 'm' or m[2] ~= entry or not t[1] then
    end_sending(entry)
    return nil
  end
  local text = text_of(m[3])
  local output = m[7] and call('HGET', P .. 'y:' .. m[3], output_field(m[7], t[2])) or ''
  bytes = bytes + #output
  local first = m[6] or call('HGET', P .. 't:' .. m[5], F.target.destination) or ''
  return {
    entry, shard, kind, message, m[3], text, f[F.outbox.destination], t[1], t[2], first, call('HGETALL', key),
    call('HGETALL', P .. 'a:' .. message), output,
  }
end

local entries = {}
if ARGV[1] == '0' then
  for k = 2, #ARGV do
    entries[#entries + 1] = call('XRANGE', P .. 'out', ARGV[k], ARGV[k])[1]
  end
else
  entries = call('XRANGE', P .. 'out', ARGV[2] == '-' and '-' or '(' .. ARGV[2], '+', 'COUNT', ARGV[1])
end
for _, found in ipairs(entries) do
  if bytes > bytes_limit then
    break
  end
  reply[#reply + 1] = read(found[1], fields_of(found))
end
return reply
