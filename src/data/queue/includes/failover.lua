-- @include "../../shard/includes/batch.lua"
-- @include "index.lua"
-- @include "outbox.lua"
-- @include "queue-room.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "work.lua"
-- @include "failures-index.lua"

-- Failover: a message moves to another target of its route: a failover destination, or back to its first one. In a target's hash: fo the
-- failover targets that come after it, in order, each a number or, in another shard, `<shard>/<destination>`; fa failed attempts after which a
-- message moves to the first of them (absent: when the retries are used up); mv the target does not serve (any more): `a` its destination is
-- disabled, suspended or gone, all its messages move on; `g` the route names it no more, the messages that moved there move on. In a message's hash:
-- h how often it has moved; hv the failover destinations that it has left, with `~` before one that made no attempt; ha attempts made at its first
-- destination when it left that; k attempts made elsewhere, which do not count here. In one that is not at its first destination also: o number of its
-- first target, or od its first destination where the message came from another shard; w and hw why it moved (w as the previous release knows it),
-- j stamp of its entry in the index of the destination where it is now. While it is in another shard: s `m`, u that shard, v entry of the outbox.

local failover = {}
do
  -- After so many moves a message stays where it is.
  local most_moves = 8

  -- What the previous release knows of the reasons.
  local known_reasons = { circuit_open = true, failed_attempts = true, max_retries_exceeded = true, secret_decryption_failed = true }

  -- Reasons after which there is no further attempt at the target: an open circuit is better than a dead letter.
  failover.last_reasons = { max_retries_exceeded = true, secret_decryption_failed = true, destination_not_found = true }

  -- Of a batch: each member goes back by itself.
  failover.way_back_of_members = 'back'

  -- What decides where a message may move.
  function failover.moves_of(id)
    local m = call('HMGET', P .. 'm:' .. id, 'o', 'od', 'h', 'hv', 'k', 'n', 'ha', 'j', 'e', 'w', 'hw', 'i')
    return {
      id = id, first = m[1], first_destination = m[2], count = tonumber(m[3] or '0'), left = m[4] or '', before = tonumber(m[5] or '0'),
      attempts = tonumber(m[6] or '0'), attempts_at_first = tonumber(m[7] or '0'), stamp = m[8], event = m[9],
      why = m[11] or m[10], created = m[12],
      is_away = (m[1] or m[2]) and true or false,
    }
  end

  -- What is known of a candidate in this shard; nil when it is gone.
  local function local_candidate(candidate)
    local t = call('HMGET', P .. 't:' .. candidate, 'o', 'd', 'cs', 'mv')
    return t[1] and { destination = t[2], is_open = t[3] == 'o', does_not_serve = t[4] } or nil
  end

  local function has_left(m, destination, any)
    local left = ' ' .. m.left .. ' '
    return string.find(left, ' ' .. destination .. ' ', 1, true) or (not any and string.find(left, ' ~' .. destination .. ' ', 1, true))
  end

  -- The first failover target of `fo` that the message has not left before and that is free, as far as this shard knows: it serves, its circuit is
  -- not open, and its queue is not full. With `any` the first with an open circuit when no other is free. nil: there is none.
  function failover.candidate(m, fo, any)
    if not fo or m.count >= most_moves then
      return nil
    end
    local first_open = nil
    for candidate in string.gmatch(fo, '%S+') do
      local elsewhere = string.match(candidate, '/(.+)$')
      if elsewhere then
        if elsewhere ~= m.first_destination and not has_left(m, elsewhere, any) then
          return candidate
        end
      elseif candidate ~= m.first then
        local t = local_candidate(candidate)
        if t and t.destination ~= m.first_destination and not t.does_not_serve and not has_left(m, t.destination, any) then
          local room = queue_room(t.destination)
          if not room or room > 0 then
            if not t.is_open then
              return candidate
            end
            first_open = first_open or candidate
          end
        end
      end
    end
    return any and first_open or nil
  end

  -- The first target of a message that has moved, written like a candidate; nil: it is there, has moved too often, or the target is gone.
  function failover.way_back(m)
    if m.count >= most_moves then
      return nil
    end
    if m.first_destination then
      local home = home_of(m.id)
      return home and home .. '/' .. m.first_destination
    end
    return m.first and call('HEXISTS', P .. 't:' .. m.first, 'o') == 1 and m.first or nil
  end

  -- Where a message goes whose target does not serve.
  function failover.next_place(m, fo)
    return failover.candidate(m, fo, false) or m.event == batch_marker and failover.way_back_of_members or failover.way_back(m)
  end

  local function is_way_back(m, candidate, shard, destination)
    if m.first_destination then
      return destination == m.first_destination and tonumber(shard) == home_of(m.id)
    end
    return candidate == m.first
  end

  -- Moves a message that stands in no lane any more to the candidate; of a batch each member.
  -- One that has made no attempt at a failover destination is there for the reason for which it had come.
  function failover.move(m, from, candidate, why)
    why = m.why and m.attempts == m.before and m.why or why
    local id = m.id
    local key = P .. 'm:' .. id
    if m.event == batch_marker then
      batch_end(id, 'f', why, candidate)
      return
    end
    local target = call('HMGET', P .. 't:' .. from, 'd', 'o')
    local at = target[1]
    -- What fails in another shard tells nobody here.
    if m.attempts > 0 or string.find(candidate, '/', 1, true) then
      note_failure(target[2] or '', id, m.created)
    end
    if m.stamp then
      index_remove(P .. 'i:' .. at, m.stamp, id)
    end
    local left = m.left
    if m.is_away then
      left = (left == '' and '' or left .. ' ') .. (m.attempts > m.before and '' or '~') .. at
    elseif m.attempts > m.before then
      m.attempts_at_first = m.attempts - m.before
    end
    local shard, destination = string.match(candidate, '^(%d+)/(.+)$')
    local is_back = is_way_back(m, candidate, shard, destination)
    local fields = { 'h', m.count + 1, 'k', is_back and m.attempts - m.attempts_at_first or m.attempts, 'ha', m.attempts_at_first }
    local function set(field, value)
      fields[#fields + 1] = field
      fields[#fields + 1] = value
    end
    if left ~= '' then
      set('hv', left)
    end
    call('HDEL', key, 'd', 'j')
    if shard or not is_back then
      set('w', known_reasons[why] and why or 'failed_attempts')
      set('hw', why)
    end
    if shard then
      if not m.is_away then
        call('HSET', key, 'o', from)
      end
      local entry = send(shard, 'v', 'm', id, 'd', destination)
      call('HSET', key, 's', 'm', 'u', shard, 'v', entry, unpack(fields))
      call('HINCRBY', ctl, 'open', -1)
      return entry
    end
    set('t', candidate)
    set('s', m.attempts > 0 and 'r' or 'p')
    if m.attempts > 0 then
      set('d', whole(now))
    end
    destination = call('HGET', P .. 't:' .. candidate, 'd')
    if is_back then
      call('HDEL', key, 'o', 'w', 'hw')
    else
      local stamp = new_stamp()
      index_add(P .. 'i:' .. destination, stamp, id)
      set('j', stamp)
      if not m.is_away then
        set('o', from)
      end
    end
    call('HSET', key, unpack(fields))
    queue_room(destination)
    use_room(destination)
    enqueue(candidate, id)
    activate(candidate)
  end
end
