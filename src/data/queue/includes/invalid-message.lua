-- @include "../../shard/includes/count.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../feed/includes/feed.lua"
-- @include "ends.lua"
-- @include "failures-index.lua"
-- @include "index.lua"
-- @created-on-first-use

-- Makes a message that is over because its event breaks the schema of its route. `n`: the target of the route without a destination; `message`: id, route,
-- `failed_for`, the destination for whose alerts it counts as a failure, or `-`, and `why`, what it breaks.
local function store_invalid(event, org, n, message)
  local stamp = new_stamp()
  call('HSET', P .. 'm:' .. message.id, F.message.event, event, F.message.target, n, F.message.status, 'v', F.message.max_attempts, '0',
    F.message.index_stamp, stamp, F.message.end_stamp, stamp, F.message.unsent_reason, message.why)
  counters.unsent(org, message.route)
  index_add(P .. 'i:fail:' .. message.route, stamp, message.id)
  note_failure(org, message.id, stamp)
  if message.failed_for ~= '-' then
    end_log.add(org, message.route, message.failed_for, 'f', 1, message.id)
  end
  index_add(P .. 'i:' .. org, stamp, message.id)
  index_add(P .. 'i:' .. message.route, stamp, message.id)
  call('XADD', P .. 'fin', stamp, F.entry.message, message.id)
  feed.message('v', org, message.id, event, nil, '-', nil, message.route)
end
