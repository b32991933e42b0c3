-- @include "../../shard/includes/chunks.lua"
-- @include "dead-letters.lua"
-- @include "index.lua"
-- @include "outbox.lua"
-- @include "retries.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "status-counts.lua"
-- @include "unfinished.lua"
-- @include "outbox-entries.lua"
-- @include "failures-index.lua"
-- @include "attempt-details.lua"
-- @include "../../shard/includes/packed.lua"
-- @include "expiry.lua"
-- @include "unfinished-changes.lua"

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
  local stamp, _, org, source, fin = string.match(head, '^(%S+) (%S+) (%S+) (%S+) (%S+)[^\n]*\n')
  local home, home_key = home_of(event)
  if home and stamp then
    index_remove(P .. 'i:cp:' .. org, stamp, event)
    send(home, 'g', F.outbox.event, home_key)
  elseif stamp then
    index_remove(P .. 'i:ev:' .. org, stamp, event)
    index_remove(P .. 'i:' .. source, stamp, event)
    if fin ~= '-' then
      history_remove(P .. 'fin', fin)
    end
  end
  release_all(event, org)
  local token, chunk_bytes = chunks.of(head)
  if token then
    chunks.remove(token, chunk_bytes)
  end
  call('DEL', key, P .. 'x:' .. event, P .. 'y:' .. event, P .. 'an:' .. event)
  call('HDEL', P .. 'refs', event)
  call('HDEL', P .. 'ad', event)
  call('HDEL', P .. 'far', event)
end

-- Drops a message's hold on its event; the event goes with the last of its messages, once no other shard has any.
local function release_event(event)
  local refs = tonumber(call('HGET', P .. 'refs', event) or '1')
  if refs > 1 or call('HEXISTS', P .. 'far', event) == 1 then
    call('HSET', P .. 'refs', event, refs - 1)
    count_messages(event, nil, -1)
  else
    remove_event(event)
  end
end

-- What the indexes of a message's first shard have of it.
local function remove_from_indexes(id, t, first_target, stamp, has_failed)
  if not t[1] then
    return
  end
  if has_failed then
    forget_failure(t[1], id, stamp)
  end
  index_remove(P .. 'i:' .. t[1], stamp, id)
  index_remove(P .. 'i:' .. t[2], stamp, id)
  local first = first_target and call('HGET', P .. 't:' .. first_target, F.target.destination) or t[3]
  index_remove(P .. 'i:' .. first, stamp, id)
end

-- Takes a dead letter out of its history, indexes and count.
local function remove_dead_letter(id, stamp, org, route, destination, reason)
  history_remove(P .. 'dead', stamp)
  if org then
    index_remove(P .. 'i:dead:' .. org, stamp, id)
    index_remove(P .. 'i:fail:' .. route, stamp, id)
    count_dead_letter(org, destination, reason, -1)
  end
end

-- Removes the results of the routes whose filter an event has not met.
local function remove_pack(pack, event, org, stamp)
  index_remove(P .. 'i:' .. org, stamp, pack)
  index_remove(P .. 'i:pk:' .. org, stamp, pack)
  history_remove(P .. 'fin', stamp)
  local bytes = call('HSTRLEN', P .. 'y:' .. event, '~')
  if bytes > 0 then
    call('HDEL', P .. 'y:' .. event, '~')
    grow_event(event, org, -bytes)
  end
  call('DEL', P .. 'm:' .. pack)
  release_event(event)
end

-- Removes a pack with the last of its results that are in a history one by one.
local function remove_result(id)
  local name, number = packed.pack_and_number(id)
  local m = name and call('HMGET', P .. 'm:' .. name, F.message.event, F.message.pack_organization, F.message.index_stamp, F.message.pack_count) or {}
  if m[1] and number + 1 == tonumber(m[4]) then
    remove_pack(name, m[1], m[2], m[3])
  end
end

-- Removes a message record with its attempts and index entries, and its event with the last of the event's messages. Where the
-- message came from another shard, the outbox gets an entry for that shard.
local function remove_message(id)
  local key = P .. 'm:' .. id
  local m = call('HMGET', key, F.message.event, F.message.target, F.message.index_stamp, F.message.end_stamp, F.message.status,
    F.message.first_target, F.message.move_stamp, F.message.dead_letter_reason, F.message.outbox_entry, F.message.attempts, F.message.moves,
    F.message.detail_bytes, F.message.pack_organization, F.message.expires_ms)
  if m[13] then
    return remove_pack(id, m[1], m[13], m[3])
  elseif not m[1] then
    return remove_result(id)
  end
  local t = call('HMGET', P .. 't:' .. m[2], F.target.organization, F.target.route, F.target.destination)
  local home, home_key = home_of(id)
  if home then
    send(home, 'r', F.outbox.message, home_key)
  else
    -- What the first attempt delivered to its first destination, without a move, has never failed.
    remove_from_indexes(id, t, m[6], m[3], m[5] ~= 'd' or m[10] ~= '1' or m[6] or m[11])
  end
  if t[1] then
    count_status(t[1], m[5], nil)
  end
  if m[7] and t[1] then
    index_remove(P .. 'i:' .. t[3], m[7], id)
  end
  if m[5] == 'q' then
    remove_dead_letter(id, m[4], t[1], t[2], t[3], m[8])
  elseif m[4] then
    history_remove(P .. 'fin', m[4])
    if t[2] and (m[5] == 'v' or m[5] == 't') then
      index_remove(P .. 'i:fail:' .. t[2], m[4], id)
    end
  elseif m[5] ~= 'm' then
    retries.remove(m[2], id)
    call('HINCRBY', ctl, F.control.open_messages, -1)
    hold_event(m[1], t[1], -1)
  elseif is_sending(m[9]) then
    hold_event(m[1], t[1], -1)
  end
  if m[14] then
    expiry.forget(id)
  end
  details.release(m[1], t[1], m[12])
  call('DEL', key, P .. 'a:' .. id)
  release_event(m[1])
end
