-- @include "account.lua"
-- @include "../../shard/includes/shard.lua"
-- @created-on-first-use

-- What waits for its time in a sorted set of the shard (`due`, `exp`, `waiting`), shared between accounts: while k of them have something due, each has at
-- least 1 / k of nine tenths of what a call takes.
--
-- The set `<name>` has all members by their time. Beside it stand an index per account, `<name>:<account>`, with the same members and times, and
-- `turns:<name>`: accounts by the time of their first member, or by the time of their last turn where that left some that are due.
--
-- The set is the truth, the index only shows where to look. Workers of the release before change the set alone. A member that they removed is found gone. A
-- member that they moved to another time is moved in the index. A member that they added is taken in the order of time until index_more has found it.
-- So a script may remove a member from the set alone.
local time_shares = {}
do
  -- At least this part of the places of a call goes by the order of time, which also finds members that the index lacks.
  local in_order = 0.1
  local max_indexed = 100
  local accounts = {}

  -- The account of a target; nil: the target is gone, or what is there is none.
  function time_shares.account_of_target(n)
    if accounts[n] == nil then
      local org = redis.pcall('HGET', P .. 't:' .. n, F.target.organization)
      accounts[n] = org and not failed(org) and account_of(org) or false
    end
    return accounts[n] or nil
  end

  -- The account has its next turn at the time of its first member, behind those that wait for their turn by now.
  local function next_turn(name, account)
    local first = call('ZRANGE', P .. name .. ':' .. account, 0, 0, 'WITHSCORES')
    if first[2] then
      call('ZADD', P .. 'turns:' .. name, integer(math.max(now, tonumber(first[2]))), account)
    else
      call('ZREM', P .. 'turns:' .. name, account)
    end
  end

  -- Adds to the index: a score and a member for each of `entries`. A turn that the account waits for stands.
  local function add_to_index(name, account, entries)
    call('ZADD', P .. name .. ':' .. account, unpack(entries))
    local first = tonumber(entries[1])
    for k = 3, #entries, 2 do
      first = math.min(first, tonumber(entries[k]))
    end
    call('ZADD', P .. 'turns:' .. name, 'LT', integer(math.max(now, first)), account)
  end

  -- Adds members to the set, and to the index unless the account is nil. Returns how many are new.
  function time_shares.add(name, account, entries)
    if account then
      add_to_index(name, account, entries)
    end
    return call('ZADD', P .. name, unpack(entries))
  end

  -- Adds a member, or moves it to an earlier time (ms). Returns whether the set has changed.
  function time_shares.add_sooner(name, account, at, member)
    local is_changed = call('ZADD', P .. name, 'LT', 'CH', at, member) == 1
    if is_changed and account then
      call('ZADD', P .. name .. ':' .. account, 'LT', at, member)
      call('ZADD', P .. 'turns:' .. name, 'LT', integer(math.max(now, tonumber(at))), account)
    end
    return is_changed
  end

  -- Returns whether the member was there.
  function time_shares.remove(name, account, member)
    if account and call('ZREM', P .. name .. ':' .. account, member) == 1 and call('EXISTS', P .. name .. ':' .. account) == 0 then
      call('ZREM', P .. 'turns:' .. name, account)
    end
    return call('ZREM', P .. name, member) == 1
  end

  -- Removes up to `limit` members of an account that are due from the index. Those that the set has, too, are removed there and added to `taken`.
  local function take_of(name, account, limit, taken)
    local index = P .. name .. ':' .. account
    local over, due = {}, {}
    for _, member in ipairs(call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, limit)) do
      local at = call('ZSCORE', P .. name, member)
      if at and tonumber(at) > now then
        call('ZADD', index, at, member)
      else
        over[#over + 1] = member
        if at then
          due[#due + 1] = member
          taken[#taken + 1] = member
        end
      end
    end
    if #over > 0 then
      call('ZREM', index, unpack(over))
    end
    if #due > 0 then
      call('ZREM', P .. name, unpack(due))
    end
    next_turn(name, account)
    return #due
  end

  -- Removes members from the index that were removed from the set.
  local function forget(name, members, account_of_member)
    local by_account = {}
    for _, member in ipairs(members) do
      local account = account_of_member(member)
      if account then
        by_account[account] = by_account[account] or {}
        table.insert(by_account[account], member)
      end
    end
    for account, own in pairs(by_account) do
      if call('ZREM', P .. name .. ':' .. account, unpack(own)) < #own then
        -- Somebody adds members without the index: there may be more.
        call('HDEL', ctl, 'indexed:' .. name)
      end
      next_turn(name, account)
    end
  end

  -- Adds to `taken` what accounts that have a turn by now may have of `limit` members.
  local function take_in_turns(name, limit, taken)
    local left = limit
    local turns = call('ZRANGEBYSCORE', P .. 'turns:' .. name, '-inf', now, 'LIMIT', 0, limit)
    for k, account in ipairs(turns) do
      left = left - take_of(name, account, math.ceil(left / (#turns - k + 1)), taken)
    end
  end

  -- Adds to `taken` up to `limit` members in the order of time. Returns how many.
  local function take_in_order(name, limit, taken, account_of_member)
    local due = call('ZRANGEBYSCORE', P .. name, '-inf', now, 'LIMIT', 0, limit)
    if #due > 0 then
      call('ZREM', P .. name, unpack(due))
      forget(name, due, account_of_member)
      for _, member in ipairs(due) do
        taken[#taken + 1] = member
      end
    end
    return #due
  end

  -- Removes up to `limit` members that are due: accounts in turn, those of an account in the order of their time. Returns them as a list.
  function time_shares.take(name, limit, account_of_member)
    local taken = {}
    if call('ZCOUNT', P .. name, '-inf', now) <= limit then
      take_in_order(name, limit, taken, account_of_member)
      -- Nothing is due in the set any more: this removes members from the index that were removed from the set alone.
      take_in_turns(name, limit, taken)
    else
      take_in_turns(name, limit - math.ceil(limit * in_order), taken)
      take_in_order(name, limit - #taken, taken, account_of_member)
    end
    return taken
  end

  -- Adds members of the set that the index lacks, some per call. The field `indexed:<name>` of `ctl` is the cursor of the next call, or `all`: the index is complete.
  function time_shares.index_more(name, account_of_member)
    local cursor = call('HGET', ctl, 'indexed:' .. name) or '0'
    if cursor == 'all' then
      return
    end
    local scan = call('ZSCAN', P .. name, cursor, 'COUNT', max_indexed)
    local by_account = {}
    for k = 1, #scan[2], 2 do
      local account = account_of_member(scan[2][k])
      if account then
        by_account[account] = by_account[account] or {}
        table.insert(by_account[account], scan[2][k + 1])
        table.insert(by_account[account], scan[2][k])
      end
    end
    for account, entries in pairs(by_account) do
      add_to_index(name, account, entries)
    end
    call('HSET', ctl, 'indexed:' .. name, scan[1] == '0' and 'all' or scan[1])
  end
end
