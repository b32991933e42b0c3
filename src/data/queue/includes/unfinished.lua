-- @include "account.lua"
-- @include "../../shard/includes/chunks.lua"
-- @include "../../shard/includes/shard.lua"

-- Bytes of events by account: of the unfinished ones, by which accounts share Redis (byte-shares.ts), and of the others, of which most goes first when
-- history is removed early (prune-account.lua).
--   ue  hash: every event for which there is something left to do here → `<holds> <bytes>`. A hold is a message here that has not ended (one that
--       moves to another shard, until it has arrived there), or an entry of the outbox of the kinds x, w and i. The bytes are those of the text, of
--       the chunks of its payload, of the outputs of its transforms and of the details of attempts (attempt-details.lua), and a constant for what is
--       stored beside them
--   ub  hash: account → the bytes of its events in `ue`, and a constant for each hold; field `*`: of all accounts
--   fb  hash: account → the bytes of its events that are not in `ue`, and a constant for each message that they have here
-- `posthorn migrate` counts all anew. Changes are gathered per script, and written once at its end
-- (write_unfinished).
local new_event, hold_event, grow_event, count_messages, release_all, forget_account, correct_event, correct_accounts, finished_weight
local correct_finished, write_unfinished
do
  local event_overhead, hold_overhead = 256, 512
  local held_events, held_changes = {}, {}
  -- What most scripts do needs no table of changes: an event that is made ({organization, size, holds}), and one that loses one hold (its organization).
  local made_events, made, ending_events, ending = {}, {}, {}, {}

  local function held_change(event, org)
    local change = held_changes[event]
    if not change then
      local new, ended = made[event], ending[event]
      org = org or new and new[1] or ended
      made[event], ending[event] = nil, nil
      -- All fields are set at once, because a table is copied each time it grows.
      change = {
        org = org, holds = new and new[3] or ended and -1 or 0, bytes = 0, messages = 0,
        size = new and new[2] or false, noted_holds = false, noted_bytes = false, left = 0,
        was_finished = false, is_finished = false,
      }
      held_changes[event] = change
      held_events[#held_events + 1] = event
    elseif not change.org then
      change.org = org
    end
    return change
  end

  -- For an event that this script makes; `size`: the length of its text, with that of the chunks of its payload.
  function new_event(event, org, size)
    if held_changes[event] or ending[event] then
      held_change(event, org).size = size
      return
    end
    made[event] = { org, size, 0 }
    made_events[#made_events + 1] = event
  end

  -- Adds holds to an event, or takes them back. `org` may be nil where the event is still there.
  function hold_event(event, org, by)
    local new = made[event]
    if new then
      new[3] = new[3] + by
      return
    end
    if by == -1 and org and not held_changes[event] and not ending[event] then
      ending[event] = org
      ending_events[#ending_events + 1] = event
      return
    end
    local change = held_change(event, org)
    change.holds = change.holds + by
  end

  -- Adds bytes to an event that is there.
  function grow_event(event, org, bytes)
    local change = held_change(event, org)
    change.bytes = change.bytes + bytes
  end

  -- Adds to the messages that an event has here (`refs`), or takes them away.
  function count_messages(event, org, by)
    local change = held_change(event, org)
    change.messages = change.messages + by
  end

  local function organization_of_event(event)
    local head = redis.pcall('GETRANGE', P .. 'e:' .. event, 0, 255)
    return type(head) == 'string' and string.match(head, '^%S+ %S+ (%S+) ') or nil
  end

  local function bytes_of_event(event)
    local length = redis.pcall('STRLEN', P .. 'e:' .. event)
    local bytes, outputs = event_overhead + (type(length) == 'number' and length or 0) + chunks.bytes_of(event), P .. 'y:' .. event
    bytes = bytes + tonumber(call('HGET', P .. 'ad', event) or '0')
    for _, field in ipairs(call('HKEYS', outputs)) do
      bytes = bytes + call('HSTRLEN', outputs, field)
    end
    return bytes
  end

  local function weight(bytes, refs)
    return bytes + tonumber(refs or '1') * hold_overhead
  end

  -- For an event that is being removed, before it is, with all that holds it.
  function release_all(event, org)
    local change = held_change(event, org)
    change.is_gone = true
    change.weight = weight(bytes_of_event(event), call('HGET', P .. 'refs', event))
  end

  -- Adds to the figures of accounts, and to that of all where there is one; one that comes to nothing goes.
  local function add_bytes(key, by_account)
    local names, fields, empty = { '*' }, {}, {}
    for account, by in pairs(by_account) do
      if by ~= 0 then
        names[#names + 1] = account
      end
    end
    if #names == 1 then
      return
    end
    local stored, total = call('HMGET', key, unpack(names)), 0
    for k = 2, #names do
      local before = tonumber(stored[k] or '0')
      local after = math.max(0, before + by_account[names[k]])
      total = total + after - before
      if after == 0 then
        empty[#empty + 1] = names[k]
      else
        fields[#fields + 1], fields[#fields + 2] = names[k], integer(after)
      end
    end
    total = math.max(0, tonumber(stored[1] or '0') + total)
    if total == 0 then
      empty[#empty + 1] = '*'
    elseif key == P .. 'ub' then
      fields[#fields + 1], fields[#fields + 2] = '*', integer(total)
    end
    if #fields > 0 then
      call('HSET', key, unpack(fields))
    end
    if #empty > 0 then
      call('HDEL', key, unpack(empty))
    end
  end

  -- Forgets what is left of an account that has no events here.
  function forget_account(org)
    local account = account_of(org)
    for _, name in ipairs({ account, '+' .. account, '~' .. account }) do
      if call('EXISTS', P .. 'i:ev:' .. name, P .. 'i:cp:' .. name) > 0 then
        return
      end
    end
    for _, key in ipairs({ P .. 'ub', P .. 'fb' }) do
      local bytes = call('HGET', key, account)
      if bytes then
        add_bytes(key, { [account] = -tonumber(bytes) })
      end
    end
  end

  -- Compares what is noted of an event with how many holds it has; returns what is noted where that is wrong, else nil. It is corrected with the other changes.
  function correct_event(event, holds)
    local noted = call('HGET', P .. 'ue', event) or '0'
    local right = holds > 0 and holds .. ' ' .. bytes_of_event(event) or '0'
    if noted == right then
      return nil
    end
    local change = held_change(event)
    change.exactly = holds
    change.is_missing = call('EXISTS', P .. 'e:' .. event) == 0
    return noted
  end

  -- Compares the figures of accounts with what is noted of their events; returns the account, what is noted and what would be right, of each that is
  -- wrong. With `is_mending` they are corrected.
  function correct_accounts(is_mending)
    local sums, wrong, by_account = {}, {}, {}
    local noted = call('HGETALL', P .. 'ue')
    for k = 1, #noted, 2 do
      local holds, bytes = string.match(noted[k + 1], '^(%d+) (%d+)$')
      local org = organization_of_event(noted[k])
      if org then
        local account = account_of(org)
        sums[account] = (sums[account] or 0) + bytes + holds * hold_overhead
      end
    end
    local stored, total, stored_total = call('HGETALL', P .. 'ub'), 0, 0
    for k = 1, #stored, 2 do
      local before = tonumber(stored[k + 1])
      if stored[k] == '*' then
        stored_total = before
      else
        by_account[stored[k]] = -before
      end
    end
    for account, sum in pairs(sums) do
      by_account[account] = (by_account[account] or 0) + sum
      total = total + sum
    end
    for account, by in pairs(by_account) do
      if by ~= 0 then
        wrong[#wrong + 1] = { account, integer((sums[account] or 0) - by), integer(sums[account] or 0) }
      end
    end
    if stored_total ~= total then
      wrong[#wrong + 1] = { '*', integer(stored_total), integer(total) }
    end
    if is_mending and #wrong > 0 then
      call('DEL', P .. 'ub')
      add_bytes(P .. 'ub', sums)
    end
    return wrong
  end

  -- The account of an event, and what `fb` counts of it; nil: it is not there, or it is unfinished.
  function finished_weight(event)
    local org = organization_of_event(event)
    if not org or call('HEXISTS', P .. 'ue', event) == 1 then
      return nil
    end
    return account_of(org), weight(bytes_of_event(event), call('HGET', P .. 'refs', event))
  end

  -- Adds to what is noted of the finished bytes of accounts.
  function correct_finished(by_account)
    add_bytes(P .. 'fb', by_account)
  end

  -- Reads the notes on the events. An event that this script makes has none.
  local function read_noted()
    local known = {}
    for _, event in ipairs(held_events) do
      if not held_changes[event].size then
        known[#known + 1] = event
      end
    end
    if #known == 0 then
      return
    end
    for k, noted in ipairs(call('HMGET', P .. 'ue', unpack(known))) do
      if noted then
        local change = held_changes[known[k]]
        local holds, bytes = string.match(noted, '^(%d+) (%d+)$')
        change.noted_holds, change.noted_bytes = tonumber(holds), tonumber(bytes)
      end
    end
  end

  -- Adds to each change whether the event was finished before this script, how many holds it has after it, and whether it is finished then. Answers
  -- `refs` of the events that begin or cease to be finished.
  local function judge_changes()
    local turning, refs = {}, {}
    for _, event in ipairs(held_events) do
      local change = held_changes[event]
      local is_there = not change.is_gone and not change.is_missing
      change.was_finished = not change.noted_holds and not change.size and not change.is_missing
      change.left = is_there and (change.exactly or math.max(0, (change.noted_holds or 0) + change.holds)) or 0
      change.is_finished = is_there and change.left == 0
      if is_there and change.was_finished ~= change.is_finished then
        turning[#turning + 1] = event
      end
    end
    if #turning > 0 then
      for k, count in ipairs(call('HMGET', P .. 'refs', unpack(turning))) do
        refs[turning[k]] = count or '1'
      end
    end
    return refs
  end

  -- By how much the finished bytes change with an event; `bytes`: what it has after this script, `refs`: nil where it is finished before and after.
  local function finished_change(change, bytes, refs)
    if change.was_finished then
      local by = change.bytes + change.messages * hold_overhead
      return change.is_gone and by - change.weight or change.is_finished and by or by - weight(bytes, refs)
    end
    return change.is_finished and weight(bytes, refs) or 0
  end

  -- The bytes of an event that is unfinished after this script, or that this script finishes.
  local function bytes_after(event, change)
    if not change.exactly and change.noted_bytes then
      return change.noted_bytes + change.bytes
    end
    return not change.exactly and change.size and event_overhead + change.size + change.bytes or bytes_of_event(event)
  end

  -- Of one write_unfinished: what is set and what is removed in `ue`, and by how much the figures of accounts change.
  local fields, gone, unfinished_by, finished_by

  local function add_to_account(org, unfinished, finished)
    local account = account_of(org)
    unfinished_by[account] = (unfinished_by[account] or 0) + unfinished
    finished_by[account] = (finished_by[account] or 0) + finished
  end

  -- Events that lose the only hold that they have. The others become changes.
  local function write_ending()
    local noted, finishing, bytes = call('HMGET', P .. 'ue', unpack(ending_events)), {}, {}
    local count, sub = 0, string.sub
    for k = 1, #ending_events do
      local event, text = ending_events[k], noted[k]
      if ending[event] then
        if text and sub(text, 1, 2) == '1 ' then
          count = count + 1
          finishing[count], bytes[count] = event, tonumber(sub(text, 3))
          gone[#gone + 1] = event
        else
          held_change(event)
        end
      end
    end
    if count == 0 then
      return
    end
    local refs_of = call('HMGET', P .. 'refs', unpack(finishing))
    local org, before, after = ending[finishing[1]], 0, 0
    for k = 1, count do
      local of, refs = ending[finishing[k]], refs_of[k]
      if of ~= org then
        add_to_account(org, -before, after)
        org, before, after = of, 0, 0
      end
      before = before + bytes[k] + hold_overhead
      after = after + bytes[k] + (refs or 1) * hold_overhead
    end
    add_to_account(org, -before, after)
  end

  -- Events that this script makes and that have holds. The others become changes.
  local function write_made()
    local org, bytes, at = nil, 0, #fields
    for k = 1, #made_events do
      local event = made_events[k]
      local new = made[event]
      local holds = new and new[3] or 0
      if holds > 0 then
        if org ~= new[1] then
          if org then
            add_to_account(org, bytes, 0)
          end
          org, bytes = new[1], 0
        end
        local size = event_overhead + new[2]
        bytes = bytes + size + holds * hold_overhead
        -- Formatting a number is slow, and most events have one hold.
        fields[at + 1], fields[at + 2] = event, (holds == 1 and '1 ' or holds .. ' ') .. size
        at = at + 2
      elseif new then
        held_change(event)
      end
    end
    if org then
      add_to_account(org, bytes, 0)
    end
  end

  local function write_changes()
    read_noted()
    local refs = judge_changes()
    for _, event in ipairs(held_events) do
      local change = held_changes[event]
      local left, bytes = change.left, nil
      local before, after = change.noted_holds and change.noted_bytes + change.noted_holds * hold_overhead or 0, 0
      if left > 0 or refs[event] then
        bytes = bytes_after(event, change)
      end
      if left > 0 then
        after = bytes + left * hold_overhead
        fields[#fields + 1], fields[#fields + 2] = event, left .. ' ' .. bytes
      elseif change.noted_holds then
        gone[#gone + 1] = event
      end
      local finished = finished_change(change, bytes, refs[event])
      local org = (after ~= before or finished ~= 0) and (change.org or organization_of_event(event))
      if org then
        add_to_account(org, after - before, finished)
      end
    end
  end

  function write_unfinished()
    fields, gone, unfinished_by, finished_by = {}, {}, {}, {}
    if #ending_events > 0 then
      write_ending()
    end
    if #made_events > 0 then
      write_made()
    end
    if #held_events > 0 then
      write_changes()
    end
    if #fields > 0 then
      call('HSET', P .. 'ue', unpack(fields))
    end
    if #gone > 0 then
      call('HDEL', P .. 'ue', unpack(gone))
    end
    add_bytes(P .. 'ub', unfinished_by)
    add_bytes(P .. 'fb', finished_by)
  end
end
