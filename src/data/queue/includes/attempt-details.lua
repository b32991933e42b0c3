-- @include "../../shard/includes/shard.lua"
-- @include "account.lua"
-- @include "../../shard/includes/first-use.lua"
-- @include "unfinished-changes.lua"

-- Attempts that have both forms (attempt-record.ts), whose long one, in `a:<message>`, may go. Kept are those of the first and the last two failed attempts
-- of a message and of the success after them, each at most 4 KiB, together at most 12 KiB; and none where the account has most of its share of Redis.
-- Their bytes count to the account: F.message.detail_bytes, and those of all messages of an event in the hash `ad`: event → bytes.
--   lean of ctl  `<bytes> <account> ...`: accounts whose details go, while the unfinished events of the shard have more bytes (byte-shares.ts)

local details = {}
on_first_use(details, function()
  local message_bytes = 12288
  -- Accounts whose details go, once this script has read them.
  local lean

  local function is_lean(account)
    if not lean then
      local above, accounts = string.match(call('HGET', ctl, F.control.accounts_lean) or '', '^(%d+) (.+)$')
      lean = above and tonumber(call('HGET', P .. 'ub', '*') or '0') > tonumber(above) and accounts_of(accounts) or {}
    end
    return lean[account] or false
  end

  -- Adds to the bytes of an event; `by` may be negative.
  local function count(event, org, by)
    local before = tonumber(call('HGET', P .. 'ad', event) or '0')
    local after = math.max(0, before + by)
    if after > 0 then
      call('HSET', P .. 'ad', event, integer(after))
    elseif before > 0 then
      call('HDEL', P .. 'ad', event)
    end
    if after ~= before then
      grow_event(event, org, after - before)
    end
  end

  -- Removes the long form of an attempt that has a short one; returns its bytes.
  local function drop(id, attempt)
    local bytes = call('HSTRLEN', P .. 'a:' .. id, attempt)
    if bytes == 0 or call('HEXISTS', P .. 'm:' .. id, attempt) == 0 then
      return 0
    end
    call('HDEL', P .. 'a:' .. id, attempt)
    return bytes
  end

  -- Removes all of a message that have a short form; returns their bytes.
  local function drop_all(id)
    local bytes = 0
    for _, attempt in ipairs(call('HKEYS', P .. 'a:' .. id)) do
      bytes = bytes + drop(id, attempt)
    end
    return bytes
  end

  -- Keeps the long form of an attempt that has just ended, and drops those that go for it. `counted`: F.message.detail_bytes. Returns what is counted now.
  function details.keep(id, event, org, attempt, long, has_delivered, counted)
    local by
    if is_lean(account_of(org)) then
      by = counted > 0 and -drop_all(id) or 0
    else
      call('HSET', P .. 'a:' .. id, attempt, long)
      by = #long
      local oldest_of_last = has_delivered and attempt - 2 or attempt - 1
      if oldest_of_last > 2 then
        by = by - drop(id, oldest_of_last - 1)
      end
      if counted + by > message_bytes and oldest_of_last > 1 then
        by = by - drop(id, oldest_of_last)
      end
    end
    count(event, org, by)
    return math.max(0, counted + by)
  end

  -- Subtracts the bytes of a message that is removed. `counted`: F.message.detail_bytes, or nothing.
  function details.release(event, org, counted)
    if counted then
      count(event, org, -tonumber(counted))
    end
  end

  -- Counts those with which a message has come from another shard.
  function details.arrived(id, event, org, bytes)
    local counted = tonumber(call('HGET', P .. 'm:' .. id, F.message.detail_bytes) or '0')
    if bytes ~= counted then
      call('HSET', P .. 'm:' .. id, F.message.detail_bytes, bytes)
      count(event, org, bytes - counted)
    end
  end
end)
