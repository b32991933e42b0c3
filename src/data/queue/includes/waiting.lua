-- @include "account.lua"
-- @include "time-shares.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @created-on-first-use

-- Names that promote.lua looks at when their time has come, in the sorted set `waiting` (time-shares.lua): limiters that targets wait under (b in target.lua), `!<target>` for an
-- open circuit, `~x` for messages that expire (expiry.lua). A name counts to the account of its targets. What all accounts wait for, `~x` and `~slow<pool>`, counts to `~`, which is no
-- account.
local waiting = {}
do
  -- `org`: of a target that waits under the name; nil: it is looked up.
  local function account(name, org)
    if string.byte(name) == 126 then
      local n = string.match(name, '^~[bo](%d+)$')
      return n and time_shares.account_of_target(n) or string.match(name, '^~slow:(.+)$') or '~'
    elseif org then
      return account_of(org)
    end
    local n = string.match(name, '^[!?](%d+)$') or redis.pcall('ZRANGE', P .. 'wait:' .. name, 0, 0)[1]
    return n and time_shares.account_of_target(n)
  end

  -- The name is looked at at this time (ms).
  function waiting.add(name, org, at)
    time_shares.add('waiting', account(name, org), { at, name })
  end

  -- The name is looked at at this time (ms), or when it was to be looked at before. Returns whether it was not there or had a later time.
  function waiting.add_sooner(name, org, at)
    return time_shares.add_sooner('waiting', account(name, org), at, name)
  end

  -- Removes up to `limit` names whose time has come, accounts in turn. Returns them as a list. The caller adds a name again
  -- if targets still wait under it.
  function waiting.take(limit)
    time_shares.index_more('waiting', account)
    return time_shares.take('waiting', limit, account)
  end
end

-- Lets a target wait under a limiter until `at` (ms), or until somebody gives the limiter back what it lacks. Routes of higher
-- priority are woken first, then who waits longest.
local function park(n, org, limiter, at)
  deactivate(n, org)
  local priority = tonumber(call('HGET', P .. 't:' .. n, F.target.priority) or '0')
  call('HSET', P .. 't:' .. n, F.target.blocked_by, limiter)
  call('ZADD', P .. 'wait:' .. limiter, 'NX', integer(counter() - priority * 1099511627776), n)
  waiting.add_sooner(limiter, org, at)
end
