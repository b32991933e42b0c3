-- @include "../../shard/includes/hints.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "time-shares.lua"
-- @include "../../shard/includes/apart.lua"
-- @created-on-first-use

-- Messages that wait for their time: `due` (time-shares.lua), its members being `<target> <message>`, and in the hash `retries` how many of each target; of
-- these, first attempts that were scheduled are counted in the hash `scheduled` besides. A scheduled message has the state `p` and, in d, its time.

local retries
do
  -- What a script adds, by target: score and member for each; written once at its end (retries.write).
  local new_retries = {}

  local function add(n, id, due)
    local entries = new_retries[n] or {}
    new_retries[n] = entries
    entries[#entries + 1] = due
    entries[#entries + 1] = n .. ' ' .. id
  end

  local function write()
    for n, entries in pairs(new_retries) do
      local added = time_shares.add('due', time_shares.account_of_target(n), entries)
      if added > 0 then
        call('HINCRBY', P .. 'retries', n, added)
      end
    end
  end

  -- Schedules the first attempt of a message.
  local function schedule(n, id, due)
    local member = n .. ' ' .. id
    if time_shares.add('due', time_shares.account_of_target(n), { integer(due), member }) == 1 then
      call('HINCRBY', P .. 'retries', n, 1)
      call('HINCRBY', P .. 'scheduled', n, 1)
    end
    hints.is_sooner = hints.is_sooner or call('ZRANGE', P .. 'due', 0, 0)[1] == member
  end

  -- Counts a scheduled message of target n that waits no longer.
  local function count_scheduled_out(n)
    if call('HINCRBY', P .. 'scheduled', n, -1) <= 0 then
      call('HDEL', P .. 'scheduled', n)
    end
  end

  -- Forgets what workers of the release before took out of a target of which nothing waits any more: it is counted still.
  local function forget_scheduled(n)
    if call('HEXISTS', P .. 'retries', n) == 0 then
      call('HDEL', P .. 'scheduled', n)
    end
  end

  local function count_out(n, by)
    if call('HINCRBY', P .. 'retries', n, -by) <= 0 then
      call('HDEL', P .. 'retries', n)
    end
  end

  -- Takes a message out that waits for its time; returns whether it was there.
  local function remove(n, id)
    if not time_shares.remove('due', time_shares.account_of_target(n), n .. ' ' .. id) then
      return false
    end
    if call('HEXISTS', P .. 'scheduled', n) == 1 and call('HGET', P .. 'm:' .. id, F.message.status) == 'p' then
      count_scheduled_out(n)
    end
    count_out(n, 1)
    forget_scheduled(n)
    if call('HGET', P .. 't:' .. n, F.target.blocked_by) == '~o' .. n then
      -- What waited for it goes on.
      activate(n)
    end
    return true
  end

  -- Removes up to `limit` of those that are due, accounts in turn. Returns a list of {target, message}. Whoever calls it calls `retries.forget_scheduled`
  -- for each target at the end, once what could not be moved is back.
  local function take_due(limit)
    local function account_of_member(member)
      return time_shares.account_of_target(string.match(member, '^%d+') or '')
    end
    time_shares.index_more('due', account_of_member)
    local taken, taken_of = {}, {}
    for _, member in ipairs(time_shares.take('due', limit, account_of_member)) do
      local n, id = string.match(member, '^(%d+) (.+)$')
      if n then
        taken[#taken + 1] = { n, id }
        taken_of[n] = (taken_of[n] or 0) + 1
      end
    end
    for n, by in pairs(taken_of) do
      count_out(n, by)
    end
    return taken
  end

  -- Puts a message back that was taken out and could not be moved: it is due again a second later.
  local function put_back(n, id)
    time_shares.add('due', time_shares.account_of_target(n), { integer(now + apart.again_ms), n .. ' ' .. id })
    call('HINCRBY', P .. 'retries', n, 1)
  end

  -- Puts a message back that `remove` took out, for its time (ms). The caller writes what was added.
  local function restore(n, id, due)
    if call('ZSCORE', P .. 'due', n .. ' ' .. id) then
      return
    elseif call('HGET', P .. 'm:' .. id, F.message.status) == 'p' then
      schedule(n, id, due)
    else
      add(n, id, due)
    end
  end

  retries = {
    add = add,
    write = write,
    schedule = schedule,
    count_scheduled_out = count_scheduled_out,
    forget_scheduled = forget_scheduled,
    remove = remove,
    take_due = take_due,
    put_back = put_back,
    restore = restore,
  }
end
