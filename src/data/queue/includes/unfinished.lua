-- @include "unfinished-changes.lua"
-- @include "unfinished-state.lua"
-- @include "../../shard/includes/shard.lua"

-- Adds to the changes of unfinished events, and writes them (unfinished-state.lua).
local new_event, hold_event, write_unfinished
do
  local made_events, made, ending_events, ending, lost_holds = {}, event_bytes.made, {}, event_bytes.ending, event_bytes.lost_holds
  local event_overhead, hold_overhead = event_bytes.event_overhead, event_bytes.hold_overhead
  local fields, gone = event_bytes.fields, event_bytes.gone

  -- For an event that this script makes; `size`: the length of its text, with that of the chunks of its payload.
  function new_event(event, org, size)
    if event_bytes.changes[event] or ending[event] then
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
    if by == -1 and org and not event_bytes.changes[event] then
      if ending[event] then
        lost_holds[event] = (lost_holds[event] or 1) + 1
      else
        ending[event] = org
        ending_events[#ending_events + 1] = event
      end
      return
    end
    local change = held_change(event, org)
    change.holds = change.holds + by
  end

  -- Events that only lose holds. One of which nothing is noted, or fewer holds, becomes a change.
  local function write_ending()
    local noted, finishing, bytes_of = call('HMGET', P .. 'ue', unpack(ending_events)), {}, {}
    local count = 0
    for k = 1, #ending_events do
      local event = ending_events[k]
      local org, lost = ending[event], lost_holds[event] or 1
      if org then
        local holds, bytes = string.match(noted[k] or '', '^(%d+) (%d+)$')
        local left = tonumber(holds or '0') - lost
        if left == 0 then
          count = count + 1
          finishing[count], bytes_of[count] = event, tonumber(bytes)
          gone[#gone + 1] = event
        elseif left > 0 then
          add_to_account(org, -lost * hold_overhead, 0)
          fields[#fields + 1], fields[#fields + 2] = event, integer(left) .. ' ' .. bytes
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
      before = before + bytes_of[k] + (lost_holds[finishing[k]] or 1) * hold_overhead
      after = after + bytes_of[k] + (refs or 1) * hold_overhead
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

  function write_unfinished()
    if #ending_events > 0 then
      write_ending()
    end
    if #made_events > 0 then
      write_made()
    end
    if #event_bytes.events > 0 then
      write_changes()
    end
    if #fields > 0 then
      call('HSET', P .. 'ue', unpack(fields))
    end
    if #gone > 0 then
      call('HDEL', P .. 'ue', unpack(gone))
    end
    add_unfinished_bytes(unfinished_by)
    add_finished_bytes(finished_by)
  end
end
