-- @include "account.lua"
-- @include "../../shard/includes/shard.lua"

-- Bytes of events by account: of the unfinished ones, by which accounts share Redis (byte-shares.ts), and of the others, of which most goes first when
-- history is removed early (prune-account.lua).
--   ue  hash: every event for which there is something left to do here → `<holds> <bytes>`. A hold is a message here that has not ended (one that
--       moves to another shard, until it has arrived there), or an entry of the outbox of the kinds x, w and i. The bytes are those of the text, of
--       the chunks of its payload, of the outputs of its transforms and of the details of attempts (attempt-details.lua), and a constant for what is
--       stored beside them
--   ub  hash: account → the bytes of its events in `ue`, and a constant for each hold; field `*`: of all accounts
--   fb  hash: account → the bytes of its events that are not in `ue`, and a constant for each message that they have here
-- `posthorn migrate` counts all anew. Changes are gathered per script, and written once at its end
-- (write_unfinished in unfinished.lua). What the files of this name share:
local event_bytes = {
  -- Bytes that stand for what is stored beside an event, and for a hold.
  event_overhead = 256,
  hold_overhead = 512,
  -- Events that this script makes, by name {organization, size, holds}, and those that only lose holds, by name the organization; how many holds where
  -- they are several. What most scripts do needs no other changes.
  made = {},
  ending = {},
  lost_holds = {},
  -- Names of the events with other changes, and these by name (unfinished-changes.lua).
  events = {},
  changes = {},
  -- What write_unfinished sets and removes in `ue`.
  fields = {},
  gone = {},
}

-- By how much the figures of accounts change.
local unfinished_by, finished_by = {}, {}

local function add_to_account(org, unfinished_bytes, finished_bytes)
  local account = account_of(org)
  unfinished_by[account] = (unfinished_by[account] or 0) + unfinished_bytes
  finished_by[account] = (finished_by[account] or 0) + finished_bytes
end

-- Adds to the figures of accounts that have no figure of all; one that comes to nothing goes.
local function add_finished_bytes(by_account)
  for account, by in pairs(by_account) do
    if by ~= 0 and call('HINCRBY', P .. 'fb', account, integer(by)) <= 0 then
      call('HDEL', P .. 'fb', account)
    end
  end
end

-- Adds to the figures of accounts, and to that of all; one that comes to nothing goes.
local function add_unfinished_bytes(by_account)
  local key = P .. 'ub'
  local names, fields, empty = { '*' }, {}, {}
  for account, by in pairs(by_account) do
    if by ~= 0 then
      names[#names + 1] = account
    end
  end
  if #names == 1 then
    return
  end
  local stored, total = call('HMGET', key, unpack(names)), 0
  for k = 2, #names do
    local before = tonumber(stored[k] or '0')
    local after = math.max(0, before + by_account[names[k]])
    total = total + after - before
    if after == 0 then
      empty[#empty + 1] = names[k]
    else
      fields[#fields + 1], fields[#fields + 2] = names[k], integer(after)
    end
  end
  total = math.max(0, tonumber(stored[1] or '0') + total)
  if total == 0 then
    empty[#empty + 1] = '*'
  else
    fields[#fields + 1], fields[#fields + 2] = '*', integer(total)
  end
  if #fields > 0 then
    call('HSET', key, unpack(fields))
  end
  if #empty > 0 then
    call('HDEL', key, unpack(empty))
  end
end
