#!lua flags=allow-oom
-- Makes room: removes history of the account that has most of it here (`fb` of includes/unfinished-state.lua), its oldest events first. prune.lua removes that of an
-- account with an archive. An account is passed over when all its events were read a moment ago: what is left of them must stay.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] how many records at most, [2] memory limit in bytes where Redis has none, or '', [3] 1: dead letters go, too.
-- Reply: {how many were removed, 1 when it found an account to prune, thousandths of the memory limit in use or -1, the account when it has an archive
-- or ''}.
--
-- `early` is a hash: account → `<list> <stamp>`, up to where its lists were walked, or `end <when (ms)>`.
-- @include "../shard/includes/shard.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/remove.lua"
-- @include "../shard/includes/event-messages.lua"
-- @include "includes/memory.lua"
-- @include "includes/archive.lua"

local walks_apart_ms, walk_kept_ms = 5000, 600000
local looked_per_record = 4

local budget, takes_dead_letters = tonumber(ARGV[1]), ARGV[3] == '1'
local removed, looked = 0, 0

local function largest_account()
  local bytes, walked, largest, most = call('HGETALL', P .. 'fb'), {}, nil, 0
  local walks = call('HGETALL', P .. 'early')
  for k = 1, #walks, 2 do
    walked[walks[k]] = walks[k + 1]
  end
  for k = 1, #bytes, 2 do
    local account, size = bytes[k], tonumber(bytes[k + 1])
    local ended = tonumber(string.match(walked[account] or '', '^end (%d+)$') or '0')
    if size > most and now - ended >= walks_apart_ms then
      largest, most = account, size
    end
  end
  return largest, largest and walked[largest] or ''
end

-- Entries of an index (includes/index.lua) behind a stamp, the oldest first: {stamp, id}.
local function entries_after(key, stamp, count)
  local kind, found = call('TYPE', key).ok, {}
  if kind == 'zset' then
    local all = call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for k = 1, #all, 2 do
      local entry = integer(tonumber(all[k + 1])) .. '-' .. integer(tonumber(string.sub(all[k], 1, 13)))
      if is_after(entry, stamp) then
        found[#found + 1] = { entry, string.sub(all[k], 14) }
      end
    end
  elseif kind == 'stream' then
    for _, entry in ipairs(call('XRANGE', key, '(' .. stamp, '+', 'COUNT', count)) do
      found[#found + 1] = { entry[1], entry[2][2] }
    end
  end
  return found
end

local function may_go(status)
  if status == 'q' then
    return takes_dead_letters
  end
  return status and status ~= 'p' and status ~= 'a' and status ~= 'r' and status ~= 'm'
end

-- Removes what has ended of an event of which nothing is unfinished. Returns false when there is more than may be removed at once.
local function prune_event(event)
  if call('HEXISTS', P .. 'ue', event) == 1 then
    return true
  end
  local head = call('GETRANGE', P .. 'e:' .. event, 0, 255)
  local ids = messages_of(event, head)
  for _, id in ipairs(ids) do
    if removed >= budget then
      return false
    end
    if may_go(call('HGET', P .. 'm:' .. id, F.message.status)) then
      remove_message(id)
      removed = removed + 1
    end
  end
  local history = string.match(head, '^%S+ %S+ %S+ %S+ (%S+)[^\n]*\n')
  if history and history ~= '-' and call('EXISTS', P .. 'e:' .. event) == 1 then
    remove_event(event)
    removed = removed + 1
  end
  return true
end

local account, walked = largest_account()
if not account then
  return { 0, 0, memory_permille(ARGV[2]) or -1, '' }
elseif call('HEXISTS', P .. 'arc', account) == 1 then
  return { 0, 0, memory_permille(ARGV[2]) or -1, account }
end
local lists = {}
for _, name in ipairs({ account, '+' .. account, '~' .. account }) do
  lists[#lists + 1] = P .. 'i:ev:' .. name
  lists[#lists + 1] = P .. 'i:cp:' .. name
end
local first, stamp = string.match(walked, '^(%d+) (%S+)$')
local list = tonumber(first or '1')
stamp = stamp or '0-0'
local limit = budget * looked_per_record
while list <= #lists and removed < budget and looked < limit do
  local entries = entries_after(lists[list], stamp, limit - looked)
  for _, entry in ipairs(entries) do
    if removed >= budget or looked >= limit or not prune_event(entry[2]) then
      break
    end
    looked = looked + 1
    stamp = entry[1]
  end
  if #entries == 0 then
    list, stamp = list + 1, '0-0'
  end
end
call('HSET', P .. 'early', account, list > #lists and 'end ' .. integer(now) or list .. ' ' .. stamp)
call('PEXPIRE', P .. 'early', walk_kept_ms)
write_status_counts()
write_unfinished()
return { removed, 1, memory_permille(ARGV[2]) or -1, '' }
