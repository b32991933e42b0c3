-- Removal of records, for retention and purge.
local function history_remove(key, stamp)
  call('XDEL', key, stamp)
  if call('XLEN', key) == 0 then
    call('DEL', key)
  end
end

local function remove_event(event)
  local key = P .. 'e:' .. event
  local head = call('GETRANGE', key, 0, 255)
  if head == '' then
    return
  end
  local stamp, _, org, source, fin = string.match(head, '^(%S+) (%S+) (%S+) (%S+) (%S+)\n')
  if stamp then
    index_remove(P .. 'i:ev:' .. org, stamp, event)
    index_remove(P .. 'i:' .. source, stamp, event)
    if fin ~= '-' then
      history_remove(P .. 'fin', fin)
    end
  end
  call('DEL', key, P .. 'x:' .. event)
  call('HDEL', P .. 'refs', event)
end

-- Removes a message record with its attempts and index entries, and its event with the last of the event's messages.
local function remove_message(id)
  local key = P .. 'm:' .. id
  local m = call('HMGET', key, 'e', 't', 'i', 'c', 's', 'o', 'j')
  local event = m[1]
  if not event then
    return
  end
  local t = call('HMGET', P .. 't:' .. m[2], 'o', 'r', 'd')
  if t[1] then
    index_remove(P .. 'i:' .. t[1], m[3], id)
    index_remove(P .. 'i:' .. t[2], m[3], id)
    local first = t[3]
    if m[6] then
      index_remove(P .. 'i:' .. t[3], m[7], id)
      first = call('HGET', P .. 't:' .. m[6], 'd') or ''
    end
    if first ~= '' then
      index_remove(P .. 'i:' .. first, m[3], id)
    end
  end
  if m[5] == 'q' then
    history_remove(P .. 'dead', m[4])
    if t[1] then
      index_remove(P .. 'i:dead:' .. t[1], m[4], id)
    end
  elseif m[4] then
    history_remove(P .. 'fin', m[4])
  else
    call('ZREM', P .. 'due', m[2] .. ' ' .. id)
    call('HINCRBY', ctl, 'open', -1)
  end
  call('DEL', key, P .. 'a:' .. id)
  local refs = call('HGET', P .. 'refs', event)
  if refs and tonumber(refs) > 1 then
    call('HINCRBY', P .. 'refs', event, -1)
  else
    remove_event(event)
  end
end
