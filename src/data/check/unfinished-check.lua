#!lua flags=allow-oom
-- Compares what is noted of unfinished events (../queue/includes/unfinished-state.lua) with what is there, or corrects it; and the same of finished ones.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] `check` or `mend`; then per event itself and its messages here, separated by spaces. Without events the figures of accounts are compared.
-- Or ARGV[1] `weigh`, then events: reply account, bytes, one after the other, of what `fb` counts of them. Or `correct`, then account, bytes, one after the
-- other, which are added to `fb`: reply 1.
-- Reply: per event that is wrong {event, what is noted, the holds that it has}; of accounts see correct_accounts. An event of which the messages are not
-- all named is passed over.
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/outbox.lua"
-- @include "../queue/includes/unfinished.lua"
-- @include "../queue/includes/outbox-entries.lua"
-- @include "../queue/includes/unfinished-changes.lua"
-- @include "../queue/includes/unfinished-state.lua"

-- Most events whose sums are compared; more would take too long.
local max_events = 20000

if ARGV[1] == 'weigh' then
  local sums, reply = {}, {}
  for k = 2, #ARGV do
    local account, bytes = finished_weight(ARGV[k])
    if account then
      sums[account] = (sums[account] or 0) + bytes
    end
  end
  for account, sum in pairs(sums) do
    reply[#reply + 1], reply[#reply + 2] = account, integer(sum)
  end
  return reply
elseif ARGV[1] == 'correct' then
  local by_account = {}
  for k = 2, #ARGV, 2 do
    by_account[ARGV[k]] = tonumber(ARGV[k + 1])
  end
  add_finished_bytes(by_account)
  return 1
end

local is_mending = ARGV[1] == 'mend'
local outbox = nil

-- The entries of this shard's outbox that make more messages of its events here: how many of each event, and how many messages.
local function entries_of(event)
  if not outbox then
    outbox = {}
    for _, found in ipairs(call('XRANGE', P .. 'out', '-', '+')) do
      local f = fields_of(found)
      local of_event = f[F.outbox.kind] == 'x' and f[F.outbox.shard] == own_shard() and f[F.outbox.event] or f[F.outbox.broken_event]
      if of_event then
        local of = outbox[of_event] or { 0, 0 }
        outbox[of_event] = { of[1] + 1, of[2] + select(2, string.gsub(f[F.outbox.lines], '[^\n]+', '')) }
      end
    end
  end
  return unpack(outbox[event] or { 0, 0 })
end

-- How many holds an event has; nil: not all of its messages are named.
local function holds_of(event, messages)
  local holds, count = 0, 0
  for id in string.gmatch(messages, '%S+') do
    local m = call('HMGET', P .. 'm:' .. id, F.message.status, F.message.event, F.message.outbox_entry)
    if m[2] == event then
      count = count + 1
      if m[1] == 'p' or m[1] == 'a' or m[1] == 'r' or m[1] == 'm' and is_sending(m[3]) then
        holds = holds + 1
      end
    end
  end
  for _ in string.gmatch(call('HGET', P .. 'far', event) or '', '%d+[xw]') do
    holds = holds + 1
  end
  local refs = tonumber(call('HGET', P .. 'refs', event) or '') or nil
  if refs and refs > count then
    local entries, to_be_made = entries_of(event)
    holds, count = holds + entries, count + to_be_made
  end
  if refs and refs ~= count or not refs and count > 1 then
    return nil
  end
  return holds
end

if #ARGV == 1 then
  return call('HLEN', P .. 'ue') <= max_events and correct_accounts(is_mending) or {}
end
local wrong = {}
for k = 2, #ARGV, 2 do
  local holds = nil
  if call('EXISTS', P .. 'e:' .. ARGV[k]) == 1 then
    holds = holds_of(ARGV[k], ARGV[k + 1])
  elseif ARGV[k + 1] == '' then
    holds = 0
  end
  local noted = holds and correct_event(ARGV[k], holds)
  if noted then
    wrong[#wrong + 1] = { ARGV[k], noted, holds }
  end
end
if is_mending then
  write_unfinished()
end
return wrong
