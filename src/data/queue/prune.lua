#!lua flags=allow-oom
-- Removes history older than its retention, the oldest first. Unfinished messages are not in the history and stay.
-- An organization with an archive (includes/archive.lua) keeps records that are not archived yet for a while longer. Records that are removed before that
-- are counted as lost.
-- Its dead letters are archived, not removed.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): finished_ms and dead_letters_ms, the retention of both; max_records; memory_limit in bytes where
-- Redis has none; unwritten: history that has not been written 0 stays, 1 is removed where the archive fails, 2 is removed; longest_wait_ms: the longest time
-- that it stays beyond the retention; first_archive: the organization whose archive is pruned first, if there is one.
-- Reply: {how many were removed, 1 when there is more, thousandths of the memory limit in use or -1, how many were removed unwritten}.
-- @include "../shard/includes/shard.lua"
-- @include "includes/status-counts.lua"
-- @include "includes/unfinished.lua"
-- @include "includes/remove.lua"
-- @include "includes/archive-dead-letter.lua"
-- @include "includes/memory.lua"
-- @include "includes/archive.lua"
-- @include "../../redis/scripts/includes/json.lua"

-- An archive that holds up pruning is tried again after so long.
local held_up_ms = 30000
local per_step = 50

local retention = decoded(ARGV[1])
local budget, unwritten, longest_wait = retention.max_records, retention.unwritten, retention.longest_wait_ms
local removed, lost, done = 0, 0, 0
local has_archives = call('EXISTS', P .. 'arc', P .. 'ah') > 0

local function note_lost(org, count)
  lost = lost + count
  call('HINCRBY', P .. 'ar:' .. org, F.archive.lost, count)
  call('HSET', P .. 'ar:' .. org, F.archive.last_loss_ms, integer(now))
  call('SADD', P .. 'arw', org)
end

-- Entries of `fin` up to a time (ms).
local function prune_history(until_ms)
  local entries = call('XRANGE', P .. 'fin', '-', integer(until_ms), 'COUNT', has_archives and math.min(per_step, budget - done) or budget)
  for _, entry in ipairs(entries) do
    local kind, id = entry[2][1], entry[2][2]
    local org = has_archives and kind == F.entry.message and archive_of(id)
    if org then
      done = done + math.max(1, move_to_archive(org, entry[1], id))
    else
      if kind == F.entry.event then
        remove_event(id)
      else
        remove_message(id)
      end
      history_remove(P .. 'fin', entry[1])
      removed = removed + 1
      done = done + 1
    end
  end
  return #entries
end

-- Entries of the part of an organization up to a time (ms), as far as they may go; `retained` is the retention.
local function prune_archive(org, until_ms, retained)
  local entries = call('XRANGE', P .. 'fin:' .. org, '-', integer(until_ms), 'COUNT', math.min(per_step, budget - done))
  done = done + 1
  local a = call('HMGET', P .. 'ar:' .. org, F.archive.written_stamp, F.archive.failures)
  local has_archive = call('HEXISTS', P .. 'arc', org) == 1
  local goes_unwritten = unwritten == 2 or (unwritten == 1 and a[2])
  local lost_here = 0
  for _, entry in ipairs(entries) do
    if has_archive and is_after(entry[1], a[1] or '0-0') then
      local ended = tonumber(string.match(entry[1], '^%d+'))
      if not goes_unwritten and now - ended < retained + longest_wait then
        if unwritten == 1 then
          write_archive_at(org, now)
        end
        call('ZADD', P .. 'ah', integer(now - retained + held_up_ms), org)
        break
      end
      lost_here = lost_here + 1
    end
    remove_message(entry[2][2])
    call('XDEL', P .. 'fin:' .. org, entry[1])
    removed, done = removed + 1, done + 1
  end
  if lost_here > 0 then
    note_lost(org, lost_here)
  end
  local head = call('ZSCORE', P .. 'ah', org)
  if not head or tonumber(head) <= until_ms then
    note_oldest(org)
  end
end

-- Both kinds of history, always the older one of the two.
local function prune_finished(retained)
  local until_ms = math.max(0, now - retained)
  while done < budget do
    local archive = call('ZRANGE', P .. 'ah', '-inf', integer(until_ms), 'BYSCORE', 'LIMIT', 0, 1)[1]
    local since = archive and tonumber(call('ZSCORE', P .. 'ah', archive))
    local head = call('XRANGE', P .. 'fin', '-', integer(until_ms), 'COUNT', 1)[1]
    local head_ms = head and tonumber(string.match(head[1], '^%d+'))
    if archive and (not head or since <= head_ms) then
      prune_archive(archive, head and math.min(head_ms, until_ms) or until_ms, retained)
    elseif head then
      prune_history(archive and math.min(since, until_ms) or until_ms)
    else
      break
    end
  end
end

local function prune_dead_letters(retained)
  for _, entry in ipairs(call('XRANGE', P .. 'dead', '-', integer(math.max(0, now - retained)), 'COUNT', budget - done)) do
    local id = entry[2][2]
    local org = has_archives and archive_of(id)
    if org and unwritten ~= 2 then
      archive_dead_letter(id)
    else
      remove_message(id)
      history_remove(P .. 'dead', entry[1])
      removed = removed + 1
      if org then
        note_lost(org, 1)
      end
    end
    done = done + 1
  end
end

if retention.first_archive then
  prune_archive(retention.first_archive, now, retention.finished_ms)
end
if removed > 0 then
  done = budget
elseif has_archives then
  prune_finished(retention.finished_ms)
else
  prune_history(math.max(0, now - retention.finished_ms))
end
if done < budget then
  prune_dead_letters(retention.dead_letters_ms)
end
write_moved(0, 0)
write_status_counts()
write_unfinished()
return { removed, done >= budget and 1 or 0, memory_permille(retention.memory_limit) or -1, lost }
