-- @include "chunks.lua"
-- @include "event-messages.lua"
-- @include "packed.lua"
-- @include "shard.lua"
-- @include "wait.lua"

-- What readers get of a record.

-- What a message has of the batch that it is a member of: fields that replace its own, and the last attempt in its long form.
local function batch_view(m, f)
  local b, own = {}, tonumber(f[F.message.attempts] or '0')
  local fields = call('HGETALL', P .. 'm:' .. f[F.message.batch])
  for k = 1, #fields, 2 do
    b[fields[k]] = fields[k + 1]
  end
  if not b[F.message.status] then
    return nil
  end
  f[F.message.status], f[F.message.due_ms] = b[F.message.status] == 'e' and 'a' or b[F.message.status], b[F.message.due_ms]
  local made = tonumber(b[F.message.attempts] or '0')
  local over = {
    F.message.status, b[F.message.status] == 'e' and 'a' or b[F.message.status], F.message.max_attempts, own + tonumber(b[F.message.max_attempts]),
  }
  if b[F.message.due_ms] then
    over[#over + 1], over[#over + 2] = F.message.due_ms, b[F.message.due_ms]
  end
  if made > 0 then
    over[#over + 1], over[#over + 2] = F.message.attempts, own + made
  end
  for k = 1, made do
    over[#over + 1] = own + k
    over[#over + 1] = b[tostring(k)] or ''
  end
  for k = 1, #over do
    m[#m + 1] = tostring(over[k])
  end
  return made > 0 and call('HGET', P .. 'a:' .. f[F.message.batch], made)
end

local viewed_fields = {
  F.target.organization, F.target.route, F.target.destination, F.target.circuit_state, F.target.cooldown_end_ms, F.target.blocked_by,
  F.target.paused_since_ms, F.target.moves_on, F.target.paused_for, F.target.shared_limiter, F.target.in_order,
}

-- {hash as a flat list, org, route, destination, last attempt in its long form or '', first destination of a message that failed
-- over or '', end of the cooldown in ms while the circuit is open or '', shard where the message is now or '', what it waits for and until when
-- (wait.lua)}; nil when there is no such message.
local function message_view(id)
  local key = P .. 'm:' .. id
  local m = call('HGETALL', key)
  if #m == 0 then
    return packed.view_of(id)
  end
  local f = {}
  for k = 1, #m, 2 do
    f[m[k]] = m[k + 1]
  end
  local values, t = call('HMGET', P .. 't:' .. (f[F.message.target] or ''), unpack(viewed_fields)), {}
  for k, field in ipairs(viewed_fields) do
    t[field] = values[k] or nil
  end
  local last = f[F.message.batch] and batch_view(m, f) or f[F.message.attempts] and call('HGET', P .. 'a:' .. id, f[F.message.attempts]) or ''
  local original = f[F.message.first_destination]
    or f[F.message.first_target] and call('HGET', P .. 't:' .. f[F.message.first_target], F.target.destination) or ''
  local elsewhere = f[F.message.status] == 'm' and f[F.message.shard] or ''
  local waits_for, wait_ends = wait_of(f[F.message.target] or '', t, f[F.message.status], f[F.message.due_ms])
  return { m, t[F.target.organization] or '', t[F.target.route] or '', t[F.target.destination] or '', last, original,
    t[F.target.circuit_state] == 'o' and waits_for ~= 'at' and t[F.target.cooldown_end_ms] or '', elsewhere, waits_for, wait_ends }
end

-- How many bytes of an event's text stand before its payload: the first two lines; 0 when they are not whole.
local function payload_start(text)
  local first = string.find(text, '\n', 1, true)
  return first and string.find(text, '\n', first + 1, true) or 0
end

-- How many bytes the payload has of an event with this text, or beginning of it, of `size` bytes.
local function payload_size(text, size)
  local _, bytes = chunks.of(text)
  return bytes or size - payload_start(text)
end

local function event_view_of(event, text, size)
  local ids, are_all = messages_of(event, text)
  local far = (call('HGET', P .. 'far', event) or '') .. ' '
  local letters, elsewhere, here, count = {}, {}, 0, #ids
  for _, id in ipairs(ids) do
    local m = call('HMGET', P .. 'm:' .. id, F.message.status, F.message.shard, F.message.pack_count)
    if m[1] then
      here = here + 1
      count = count + (m[3] or 1) - 1
    end
    if m[1] == 'm' or (not m[1] and #id == 27) then
      -- One that is not found is still to come, or is gone.
      local token = ' ' .. (m[1] and '' or tonumber(string.sub(id, 1, 2), 36)) .. 'x '
      local is_coming = m[1] or string.find(far, token, 1, true)
      elsewhere[#elsewhere + 1] = { id, m[2] or '', is_coming and 'p' or '' }
    else
      letters[#letters + 1] = m[1] or ''
    end
  end
  -- Some of them are still to be made.
  if are_all and tonumber(call('HGET', P .. 'refs', event) or '0') > here or string.find(far, '%d+w ') then
    letters[#letters + 1] = 'p'
  end
  return { text, table.concat(letters), count, size, elsewhere, #ids }, ids
end

-- The status of an event as `eventStatus` of message-view.ts has it; nil where messages in other shards have a say.
local function event_status(event)
  local view = event_view_of(event, call('GETRANGE', P .. 'e:' .. event, 0, 255), 0)
  local letters = view[2]
  if #view[5] > 0 then
    return nil
  elseif letters == '' then
    return 'no_routes'
  elseif string.find(letters, '[parm]') then
    return 'pending'
  end
  local is_delivered = string.find(letters, 'd', 1, true)
  if string.find(letters, '[qxvt]') then
    return is_delivered and 'partial' or 'failed'
  end
  return is_delivered and 'delivered' or 'filtered'
end

-- Bytes of a payload in chunks that are shown with the event.
local shown_bytes = 65536

-- A text with so many bytes of its payload.
local function text_with(text, payload_bytes)
  local token = chunks.of(text)
  local start = payload_start(text)
  if token and payload_bytes > 0 then
    return text .. call('GETRANGE', P .. 'c:' .. token .. ':0', 0, payload_bytes - 1)
  end
  return string.sub(text, 1, start + payload_bytes)
end

-- {text, status letters of its messages here, how many it has, bytes of its payload, messages in other shards {id, shard if it is not
-- that of the id or '', letter of one that is not found there}, how many records it has} and the ids of these; nil when there is no such event.
local function event_view(event)
  local text = call('GET', P .. 'e:' .. event)
  if text then
    local size = payload_size(text, #text)
    return event_view_of(event, chunks.of(text) and text_with(text, shown_bytes) or text, size)
  end
  return nil
end

-- The text of an event with so many bytes of its payload, and how many it has; nothing when there is no such event.
local function event_beginning(event, payload_bytes)
  local key = P .. 'e:' .. event
  local size = call('STRLEN', key)
  if size == 0 then
    return
  end
  local text = call('GETRANGE', key, 0, 16383 + payload_bytes)
  if size > #text and payload_start(text) == 0 then
    text = call('GET', key)
  end
  return text_with(text, payload_bytes), payload_size(text, size)
end

-- The same with a text that ends before the payload: lists do not show it.
local function event_head_view(event)
  local key = P .. 'e:' .. event
  local head = call('GETRANGE', key, 0, 16383)
  local size = call('STRLEN', key)
  if size > #head and payload_start(head) == 0 then
    head = call('GET', key)
  end
  local start = payload_start(head)
  if head ~= '' then
    return (event_view_of(event, string.sub(head, 1, start), payload_size(head, size)))
  end
  return nil
end
