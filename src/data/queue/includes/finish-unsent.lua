-- @include "../../feed/includes/feed.lua"
-- @include "ends.lua"
-- @include "failures-index.lua"
-- @include "index.lua"
-- @include "unfinished.lua"
-- @include "../../shard/includes/count.lua"
-- @include "../../shard/includes/shard.lua"

-- @created-on-first-use

-- Ends a message that is held and never leaves: `f` filtered, `t` its transform has failed, and why. Returns the fields to write into its hash.
local function finish_unsent(id, event, org, n, status, why)
  local stamp = new_stamp()
  hold_event(event, org, -1)
  note_failure(org, id, call('HGET', P .. 'm:' .. id, F.message.index_stamp))
  local t = call('HMGET', P .. 't:' .. n, F.target.route, F.target.destination, F.target.has_alerts)
  local route = t[1] or ''
  feed.message(status, org, id, event, n, t[2] or '-', nil, route)
  if status == 't' then
    if is_for_webhooks(org) then
      counters.ended(org, n, t[2] or '', F.tally.failed)
    else
      counters.unsent(org, route)
    end
    index_add(P .. 'i:fail:' .. route, stamp, id)
    if t[3] then
      end_log.add(org, route, end_log.first_destination(id, t[2]), 'f', 1, id)
    end
  else
    counters.held_back(org, route, 1)
    counters.reason(org, n, 'filtered')
  end
  call('XADD', P .. 'fin', stamp, F.entry.message, id)
  if why == '' then
    return F.message.status, status, F.message.end_stamp, stamp
  end
  return F.message.status, status, F.message.end_stamp, stamp, F.message.unsent_reason, why
end
