-- @include "remove.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "unfinished.lua"
-- @include "unfinished-changes.lua"

-- Takes one of the tokens that hold an event for other shards (outbox.lua); the event goes with the last of them, once none of its
-- messages is here. Returns whether it was there.
local function far_release(event, token)
  local far = call('HGET', P .. 'far', event)
  local from, to = string.find((far or '') .. ' ', ' ' .. token .. ' ', 1, true)
  if not from then
    return false
  end
  -- One without a letter is for a copy, which holds nothing unfinished here.
  if string.find(token, '%a$') then
    hold_event(event, nil, -1)
  end
  local left = string.sub(far, 1, from - 1) .. string.sub(far, to)
  if left ~= '' then
    call('HSET', P .. 'far', event, left)
    return true
  end
  call('HDEL', P .. 'far', event)
  if tonumber(call('HGET', P .. 'refs', event) or '1') < 1 then
    remove_event(event)
  end
  return true
end

-- Holds an event for messages that are sent to another shard, and for the copy that they make there.
local function far_hold(event, shard)
  hold_event(event, nil, 1)
  local far = (call('HGET', P .. 'far', event) or '') .. ' ' .. shard .. 'x'
  if not string.find(far .. ' ', ' ' .. shard .. ' ', 1, true) then
    far = far .. ' ' .. shard
  end
  call('HSET', P .. 'far', event, far)
end

-- An event whose search for targets, which holds it by `token`, has found nothing at all is history like one that nobody wants. Answers
-- whether it was that.
local function keep_without_messages(event, token)
  if call('HGET', P .. 'far', event) ~= ' ' .. token or tonumber(call('HGET', P .. 'refs', event) or '1') > 0 then
    return false
  end
  local text = call('GET', P .. 'e:' .. event)
  local head, rest = string.match(text, '^(%S+ %S+ %S+ %S+) %S+([^\n]*\n.*)$')
  local stamp = new_stamp()
  local kept = head .. ' ' .. stamp .. rest
  call('SET', P .. 'e:' .. event, kept)
  grow_event(event, nil, #kept - #text)
  call('XADD', P .. 'fin', stamp, F.entry.event, event)
  call('HDEL', P .. 'far', event)
  hold_event(event, nil, -1)
  return true
end
