-- @include "../../shard/includes/count.lua"
-- @include "dead-letters.lua"
-- @include "ends.lua"
-- @include "index.lua"
-- @include "own-events.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "unfinished.lua"
-- @include "failures-index.lua"
-- @include "../../feed/includes/feed.lua"
-- @include "cancelled.lua"

-- By message what an end as a dead letter writes into its hash, from its entry in the history on.
local begun_ends = {}
-- By message that bury ends its organization, and the status that it has until then.
local burying = {}

-- Ends a message, of this event, of target n that is not held. Status: `d` delivered, `q` dead letter with its reason. `error_type`: the type of error of a
-- dead letter; nil: that of its last attempt. `how` as counters.ended has it.
-- History entries `fin` and `dead` are what pruning walks. `i:fail:<route>` lists the failed messages of a route, `i:bad:<org>` (failures-index.lua) those of
-- an organization. Returns the fields to write into the message's hash.
local function finish(id, event, org, n, destination, status, reason, error_type, how)
  local stamp = new_stamp()
  if status == 'q' then
    -- Before anything is counted: a message that an error keeps out of the history has not ended.
    call('XADD', P .. 'dead', stamp, F.entry.message, id)
    begun_ends[id] = {
      F.message.status, status, F.message.end_stamp, stamp, F.message.dead_letter_reason, reason,
      error_type and F.message.end_error_type or nil, error_type,
    }
  end
  hold_event(event, org, -1)
  local is_cancelled = reason == cancelled.reason
  if not is_cancelled then
    counters.ended(org, n, destination, how or (status == 'd' and F.tally.delivered or F.tally.failed))
  end
  feed.message(status, org, id, event, n, destination, reason)
  if status == 'q' then
    index_add(P .. 'i:dead:' .. org, stamp, id)
    note_failure(org, id, call('HGET', P .. 'm:' .. id, F.message.index_stamp))
    local t = call('HMGET', P .. 't:' .. n, F.target.route, F.target.has_alerts, F.target.has_own_events, F.target.failure_threshold)
    local is_expired = reason == 'expired' or error_type == 'expired'
    -- No worker has ever configured the target (one that was dropped keeps the threshold): the notifier finds out who hears of it. Of alerts nobody does.
    local is_unknown = is_expired and t[1] and not t[4] and string.byte(org) ~= 126
    if t[1] then
      index_add(P .. 'i:fail:' .. t[1], stamp, id)
    end
    count_dead_letter(org, destination, reason, 1)
    counters.reason(org, n, reason)
    if is_cancelled or is_expired then
      -- For the metrics.
      call('HINCRBY', ctl, (is_cancelled and reason or 'expired') .. (is_for_webhooks(org) and ' endpoint' or ' destination'), 1)
    end
    if (t[2] or is_unknown and not is_for_webhooks(org)) and not is_cancelled then
      end_log.add(org, t[1], end_log.first_destination(id, destination), 'f', 1, id)
    end
    if (t[3] or is_unknown) and not is_cancelled then
      note_own(F.own_events.dead, org, t[1], destination, id, reason, nil, is_unknown)
    end
    return unpack(begun_ends[id])
  end
  call('XADD', P .. 'fin', stamp, F.entry.message, id)
  return F.message.status, status, F.message.end_stamp, stamp
end
