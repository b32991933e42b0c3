-- @include "../../shard/includes/batch.lua"
-- @include "index.lua"
-- @include "outbox.lua"
-- @include "queue-capacity.lua"
-- @include "retries.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "work.lua"
-- @include "failures-index.lua"
-- @include "expiry.lua"
-- @include "lanes.lua"
-- @created-on-first-use

-- Failover: a message moves to another target of its route: a failover destination, or back to its first one. A target
-- that does not serve (any more) has F.target.moves_on: `a` its destination is disabled, suspended or gone, all its messages move on; `g` the route names it no more,
-- the messages that moved there move on (guests.lua). A message that has moved
-- has the fields of ../../shard/hash-fields.ts; F.message.attempts_before_move of one that came back after 1000 is less than 0. While it is in another shard its status is `m`.
--
-- A shard sees only a part of the state of a destination in another shard, which judges the message on arrival (receive.lua). A message that has come back is
-- sent there again only after a question to that shard (entry `f` of the outbox, failover-capacity.lua), one per target and destination at a time.
-- For a few seconds the reply is in `free:<target> <shard>/<destination>`: how many more messages it takes. `asked:<target> <shard>/<destination>` has
-- the entry of the last question, and when it was asked (ms).

local failover = {}
do
  -- After so many moves a message stays where it is.
  local max_moves = 8
  failover.max_moves = max_moves

  -- So many attempts are noted at the first destination when that rejected the message: what comes back there has no retry left.
  local more_than_any_policy = 1000

  -- Another question comes after so long at the earliest; its mark is gone when nothing has been asked for an hour.
  local asked_again_ms, asked_kept_ms = 1000, 3600000

  -- What has refused a message that might take it by now, by its name in Redis, with the arguments of the question.
  local unsure = {}

  -- Reasons after which there is no further attempt at the target: an open circuit is better than a dead letter.
  failover.last_reasons = { max_retries_exceeded = true, secret_decryption_failed = true, destination_not_found = true }

  -- Messages that the last call of `move` has queued at another target, also when an error has cut it short after that.
  failover.moved = {}

  -- Next place of a batch. Each member moves on, or back, by itself.
  failover.way_back_of_members = 'back'

  -- What decides where a message may move; without `event`: it is gone or has ended.
  function failover.moves_of(id)
    local m = call('HMGET', P .. 'm:' .. id, F.message.first_target, F.message.first_destination, F.message.moves, F.message.left,
      F.message.attempts_before_move, F.message.attempts, F.message.attempts_at_first, F.message.move_stamp, F.message.event, F.message.move_reason,
      F.message.index_stamp, F.message.target, F.message.has_guests, F.message.status, F.message.due_ms, F.message.expires_ms)
    return {
      id = id, at = m[12], first = m[1], first_destination = m[2], count = tonumber(m[3] or '0'), left = m[4] or '', before = tonumber(m[5] or '0'),
      attempts = tonumber(m[6] or '0'), attempts_at_first = tonumber(m[7] or '0'), stamp = m[8], event = not expiry.has_ended(m[14]) and m[9],
      expires = tonumber(m[16] or '') or nil,
      why = m[10], created = m[11], due = m[14] == 'p' and tonumber(m[15] or '0') > now and tonumber(m[15]) or nil,
      is_away = (m[1] or m[2]) and true or false, has_guests = m[9] == batch_marker and m[13] == '1',
    }
  end

  -- What is known of a candidate in this shard; nil when it is gone, or has no lane that takes messages.
  local function local_candidate(candidate)
    local t = call('HMGET', P .. 't:' .. candidate, F.target.organization, F.target.destination, F.target.circuit_state, F.target.moves_on)
    return t[1] and not lane_obstacle(candidate) and { destination = t[2], is_open = t[3] == 'o', does_not_serve = t[4] } or nil
  end

  -- Whether a target of this shard can be given messages.
  function failover.is_there(candidate)
    return local_candidate(candidate) ~= nil
  end

  local function has_left(m, destination)
    return string.find(' ' .. m.left .. ' ', ' ' .. destination .. ' ', 1, true)
  end

  -- Whether a message may go to a destination in another shard, which may have refused it before.
  local function may_go_there(m, shard, destination, any)
    if destination == m.first_destination or has_left(m, destination) then
      return false
    end
    if any or not has_left(m, '~' .. destination) then
      return true
    end
    local name = m.at .. ' ' .. shard .. '/' .. destination
    if tonumber(call('GET', P .. 'free:' .. name) or '0') > 0 then
      call('INCRBY', P .. 'free:' .. name, -1)
      return true
    end
    unsure[name] = { shard, m.at, destination }
    return false
  end

  -- The first failover target of `fo` at which the message has made no attempt and that is free, as far as this shard knows: it serves, its circuit is
  -- not open, and its queue is not full. With `any` also one in another shard that has refused the message before, and, where it is `open`, the first
  -- with an open circuit when no other is free. nil: there is none, or the message has expired.
  function failover.candidate(m, fo, any)
    if not fo or m.count >= max_moves or expiry.is_over(m.expires) then
      return nil
    end
    local first_open = nil
    for candidate in string.gmatch(fo, '%S+') do
      local shard, elsewhere = string.match(candidate, '^(%d+)/(.+)$')
      if elsewhere then
        if may_go_there(m, shard, elsewhere, any) then
          return candidate
        end
      elseif candidate ~= m.first then
        local t = local_candidate(candidate)
        if t and t.destination ~= m.first_destination and not t.does_not_serve and not has_left(m, t.destination) then
          local room = queue_capacity(t.destination)
          if not room or room > 0 then
            if not t.is_open then
              return candidate
            end
            first_open = first_open or candidate
          end
        end
      end
    end
    return any == 'open' and first_open or nil
  end

  -- Asks the other shards whether they take messages that they have refused.
  function failover.ask()
    for name, question in pairs(unsure) do
      local key = P .. 'asked:' .. name
      local entry, asked_ms = string.match(call('GET', key) or '', '^(%S+) (%d+)$')
      local is_asking = entry and (now - tonumber(asked_ms) < asked_again_ms or #call('XRANGE', P .. 'out', entry, entry) > 0)
      if not is_asking then
        local shard, n, destination = unpack(question)
        call('SET', key, send(shard, 'f', F.outbox.event, n, F.outbox.message, destination) .. ' ' .. integer(now), 'PX', asked_kept_ms)
      end
    end
  end

  -- The first target of a message that has moved, written like a candidate; nil: it is there, has moved too often, or the target is gone.
  function failover.way_back(m)
    if m.count >= max_moves or expiry.is_over(m.expires) then
      return nil
    end
    if m.first_destination then
      local home = home_of(m.id)
      return home and home .. '/' .. m.first_destination
    end
    return m.first and failover.is_there(m.first) and m.first or nil
  end

  -- Whether a message, or a member of a batch, came from another destination.
  function failover.is_guest(m)
    return m.is_away or m.has_guests
  end

  -- The same of one that is looked at for the first time, with the fewest fields: what decides where it may move; nil when it is no guest.
  function failover.guest_of(id)
    local m = call('HMGET', P .. 'm:' .. id, F.message.first_target, F.message.first_destination, F.message.event, F.message.has_guests)
    local is_guest = m[1] or m[2] or m[3] == batch_marker and m[4] == '1'
    local moves = is_guest and failover.moves_of(id)
    return moves and moves.event and moves or nil
  end

  -- Where a message goes whose target does not serve, or, with `g` for `moves`, no longer serves guests: of a batch these may be some members only.
  function failover.next_place(m, fo, moves)
    if m.event == batch_marker and moves == 'g' then
      return failover.way_back_of_members
    end
    return failover.candidate(m, fo, false) or m.event == batch_marker and failover.way_back_of_members or failover.way_back(m)
  end

  local function is_way_back(m, candidate, shard, destination)
    if m.first_destination then
      return destination == m.first_destination and tonumber(shard) == home_of(m.id)
    end
    return candidate == m.first
  end

  -- Moves a message that is in no lane any more to the candidate; of a batch each member.
  -- One that has made no attempt at a failover destination is there for the reason for which it had come.
  function failover.move(m, from, candidate, why)
    why = m.why and m.attempts == m.before and m.why or why
    local id = m.id
    failover.moved[id] = nil
    local key = P .. 'm:' .. id
    if m.event == batch_marker then
      batch_end(id, 'f', why, candidate)
      return
    end
    local target = call('HMGET', P .. 't:' .. from, F.target.destination, F.target.organization)
    local at = target[1]
    -- The index of failures is in the shard where the message was created, and the other shard cannot write it.
    if m.attempts > 0 or string.find(candidate, '/', 1, true) then
      note_failure(target[2] or '', id, m.created)
    end
    if m.stamp then
      index_remove(P .. 'i:' .. at, m.stamp, id)
    end
    local left = m.left
    if m.is_away then
      left = (left == '' and '' or left .. ' ') .. (m.attempts > m.before and '' or '~') .. at
    elseif m.is_rejected then
      m.attempts_at_first = more_than_any_policy
    elseif m.attempts > m.before then
      m.attempts_at_first = m.attempts - m.before
    end
    local shard, destination = string.match(candidate, '^(%d+)/(.+)$')
    local is_back = is_way_back(m, candidate, shard, destination)
    local fields = {
      F.message.moves, m.count + 1, F.message.attempts_before_move, is_back and m.attempts - m.attempts_at_first or m.attempts,
      F.message.attempts_at_first, m.attempts_at_first,
    }
    local function set(field, value)
      fields[#fields + 1] = field
      fields[#fields + 1] = value
    end
    if left ~= '' then
      set(F.message.left, left)
    end
    call('HDEL', key, F.message.move_stamp)
    if not m.due then
      call('HDEL', key, F.message.due_ms)
    end
    if shard or not is_back then
      set(F.message.move_reason, why)
    end
    if shard then
      if not m.is_away then
        call('HSET', key, F.message.first_target, from)
      end
      local entry = send(shard, 'v', F.outbox.message, id, F.outbox.destination, destination)
      call('HSET', key, F.message.status, 'm', F.message.shard, shard, F.message.outbox_entry, entry, unpack(fields))
      failover.moved[id] = true
      if m.expires then
        expiry.forget(id)
      end
      call('HINCRBY', ctl, F.control.open_messages, -1)
      return entry
    end
    set(F.message.target, candidate)
    set(F.message.status, m.attempts > 0 and 'r' or 'p')
    if m.attempts > 0 then
      set(F.message.due_ms, integer(now))
    end
    destination = call('HGET', P .. 't:' .. candidate, F.target.destination)
    if is_back then
      call('HDEL', key, F.message.first_target, F.message.move_reason)
    else
      local stamp = new_stamp()
      index_add(P .. 'i:' .. destination, stamp, id)
      set(F.message.move_stamp, stamp)
      if not m.is_away then
        set(F.message.first_target, from)
      end
    end
    call('HSET', key, unpack(fields))
    if m.due then
      retries.schedule(candidate, id, m.due)
      failover.moved[id] = true
      return
    end
    queue_capacity(destination)
    use_room(destination)
    enqueue(candidate, id, m.expires)
    failover.moved[id] = true
    activate(candidate)
  end

  local function has_moved(id)
    return failover.moved[id]
  end

  -- Moves a message out of its lane, of which this is the entry.
  function failover.move_out(lane, entry, m, from, candidate, why)
    remove_after(lane, entry, has_moved, failover.move, m, from, candidate, why)
  end
end
