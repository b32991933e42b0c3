-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/hints.lua"
-- @include "account.lua"
-- @created-on-first-use

-- The log of what ends at targets whose route has alerts (F.target.has_alerts): the stream `ends`, which src/notify reads and
-- forgets. F.ends has the fields of its entries; kind is what ended: f a message that failed, s messages that were delivered, o a circuit that opens,
-- c one that closes. Entries with an organization are for Posthorn's own events (own-events.lua).
-- Without a reader the oldest entries go, and counts of alerts are then too small. Before that, from ends_shared entries on, an organization adds as many at
-- most until the log was read to its end. The hash `ends-of` counts them. Further ends of that organization are left out, so that it pushes out no ends of others.
local ends_kept = 100000
local end_log
do
  -- Successes in a row of this call, by route and destination: {organization, route, destination, how many, last message}.
  local successes = {}

  local ends_shared = 10000
  local is_shared = nil

  local function may_add(org)
    if is_shared == nil then
      is_shared = call('XLEN', P .. 'ends') >= ends_shared
    end
    return not is_shared or call('HINCRBY', P .. 'ends-of', account_of(org), 1) <= ends_shared
  end

  local function add(org, route, destination, kind, count, id)
    local before = successes[route .. ' ' .. destination]
    successes[route .. ' ' .. destination] = nil
    if before then
      add(before[1], before[2], before[3], 's', before[4], before[5])
    end
    hints.ends = 1
    if may_add(org) then
      call('XADD', P .. 'ends', 'MAXLEN', '~', ends_kept, new_entry(), F.ends.route, route, F.ends.destination, destination,
        F.ends.at_ms, integer(now), F.ends.kind, kind, F.ends.count, count, F.ends.message, id)
    end
  end

  -- Where a message of the target was sent first: it may have failed over.
  local function first_destination(id, destination)
    local m = call('HMGET', P .. 'm:' .. id, F.message.first_target, F.message.first_destination)
    return m[2] or m[1] and call('HGET', P .. 't:' .. m[1], F.target.destination) or destination
  end

  local function add_success(id, org, route, destination)
    local first = first_destination(id, destination)
    local s = successes[route .. ' ' .. first] or { org, route, first, 0 }
    successes[route .. ' ' .. first] = s
    s[4], s[5] = s[4] + 1, id
  end

  local function write_successes()
    for name, s in pairs(successes) do
      successes[name] = nil
      add(s[1], s[2], s[3], 's', s[4], s[5])
    end
  end

  end_log = { add = add, first_destination = first_destination, add_success = add_success, write_successes = write_successes }
end
