-- @include "account.lua"
-- @include "unfinished-state.lua"
-- @include "../../shard/includes/chunks.lua"
-- @include "../../shard/includes/shard.lua"

-- @created-on-first-use

-- Changes of unfinished events that most scripts do not make (unfinished-state.lua).
local grow_event, count_messages, release_all, forget_account, correct_event, correct_accounts, finished_weight
local held_change, write_changes
do
  function held_change(event, org)
    local change = event_bytes.changes[event]
    if not change then
      local new, ended = event_bytes.made[event], event_bytes.ending[event]
      org = org or new and new[1] or ended
      event_bytes.made[event], event_bytes.ending[event] = nil, nil
      -- All fields are set at once, because a table is copied each time it grows.
      change = {
        org = org, holds = new and new[3] or ended and -(event_bytes.lost_holds[event] or 1) or 0, bytes = 0, messages = 0,
        size = new and new[2] or false, noted_holds = false, noted_bytes = false, left = 0,
        was_finished = false, is_finished = false,
      }
      event_bytes.changes[event] = change
      event_bytes.events[#event_bytes.events + 1] = event
    elseif not change.org then
      change.org = org
    end
    return change
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
    local bytes, outputs = event_bytes.event_overhead + (type(length) == 'number' and length or 0) + chunks.bytes_of(event), P .. 'y:' .. event
    bytes = bytes + tonumber(call('HGET', P .. 'ad', event) or '0')
    for _, field in ipairs(call('HKEYS', outputs)) do
      bytes = bytes + call('HSTRLEN', outputs, field)
    end
    return bytes
  end

  local function weight(bytes, refs)
    return bytes + tonumber(refs or '1') * event_bytes.hold_overhead
  end

  -- For an event that is being removed, before it is, with all that holds it.
  function release_all(event, org)
    local change = held_change(event, org)
    change.is_gone = true
    change.weight = weight(bytes_of_event(event), call('HGET', P .. 'refs', event))
  end

  -- Forgets what is left of an account that has no events here.
  function forget_account(org)
    local account = account_of(org)
    for _, name in ipairs({ account, '+' .. account, '~' .. account }) do
      if call('EXISTS', P .. 'i:ev:' .. name, P .. 'i:cp:' .. name) > 0 then
        return
      end
    end
    local bytes = call('HGET', P .. 'ub', account)
    if bytes then
      add_unfinished_bytes({ [account] = -tonumber(bytes) })
    end
    call('HDEL', P .. 'fb', account)
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
        sums[account] = (sums[account] or 0) + bytes + holds * event_bytes.hold_overhead
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
      add_unfinished_bytes(sums)
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

  -- Reads the notes on the events. An event that this script makes has none.
  local function read_noted()
    local known = {}
    for _, event in ipairs(event_bytes.events) do
      if not event_bytes.changes[event].size then
        known[#known + 1] = event
      end
    end
    if #known == 0 then
      return
    end
    for k, noted in ipairs(call('HMGET', P .. 'ue', unpack(known))) do
      if noted then
        local change = event_bytes.changes[known[k]]
        local holds, bytes = string.match(noted, '^(%d+) (%d+)$')
        change.noted_holds, change.noted_bytes = tonumber(holds), tonumber(bytes)
      end
    end
  end

  -- Adds to each change whether the event was finished before this script, how many holds it has after it, and whether it is finished then. Returns
  -- `refs` of the events that begin or cease to be finished.
  local function judge_changes()
    local turning, refs = {}, {}
    for _, event in ipairs(event_bytes.events) do
      local change = event_bytes.changes[event]
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
      local by = change.bytes + change.messages * event_bytes.hold_overhead
      return change.is_gone and by - change.weight or change.is_finished and by or by - weight(bytes, refs)
    end
    return change.is_finished and weight(bytes, refs) or 0
  end

  -- The bytes of an event that is unfinished after this script, or that this script finishes.
  local function bytes_after(event, change)
    if not change.exactly and change.noted_bytes then
      return change.noted_bytes + change.bytes
    end
    return not change.exactly and change.size and event_bytes.event_overhead + change.size + change.bytes or bytes_of_event(event)
  end

  function write_changes()
    read_noted()
    local refs = judge_changes()
    for _, event in ipairs(event_bytes.events) do
      local change = event_bytes.changes[event]
      local left, bytes = change.left, nil
      local before, after = change.noted_holds and change.noted_bytes + change.noted_holds * event_bytes.hold_overhead or 0, 0
      if left > 0 or refs[event] then
        bytes = bytes_after(event, change)
      end
      if left > 0 then
        after = bytes + left * event_bytes.hold_overhead
        event_bytes.fields[#event_bytes.fields + 1], event_bytes.fields[#event_bytes.fields + 2] = event, left .. ' ' .. bytes
      elseif change.noted_holds then
        event_bytes.gone[#event_bytes.gone + 1] = event
      end
      local finished = finished_change(change, bytes, refs[event])
      local org = (after ~= before or finished ~= 0) and (change.org or organization_of_event(event))
      if org then
        add_to_account(org, after - before, finished)
      end
    end
  end
end
