-- @include "unfinished-changes.lua"
-- @include "unfinished-state.lua"
-- @include "../../shard/includes/shard.lua"

-- Adds to the changes of unfinished events, and writes them (unfinished-state.lua).
local new_event, hold_event, write_unfinished
do
  local made_events, made, ending_events, ending = {}, event_bytes.made, {}, event_bytes.ending
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
    if by == -1 and org and not event_bytes.changes[event] and not ending[event] then
      ending[event] = org
      ending_events[#ending_events + 1] = event
      return
    end
    local change = held_change(event, org)
    change.holds = change.holds + by
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
    add_account_bytes(P .. 'ub', unfinished_by)
    add_account_bytes(P .. 'fb', finished_by)
  end
end
