-- What every script of a shard shares. KEYS[1] is `<prefix>{sN}:ctl`, KEYS[2] `<prefix>{sN}:~`, which never exists: while a
-- Cluster moves the slot, one key is there and one is not, so Redis answers TRYAGAIN before the script begins.
local call = redis.call
local ctl = KEYS[1]
local P = string.sub(ctl, 1, -4)
local clock = call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

-- The event of a batch (batch.lua).
local batch_marker = '*'

-- Whether a redis.pcall answered an error.
local function failed(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

-- A number as decimal text, without its fraction; Lua itself writes 1e15 from 15 digits on, and takes longer for it.
local format = string.format
local function integer(number)
  return format('%d', number)
end

-- The next number of the shard. A number is used twice only when a failover to a replica has lost its first use. Numbers are taken in
-- blocks, because a call costs more than a gap. `count`: so many in a row are taken; returns the first.
local counter_next, counter_last = 1, 0
local function counter(count)
  count = count or 1
  if counter_next + count - 1 > counter_last then
    local taken = math.max(32, count)
    counter_last = call('HINCRBY', ctl, F.control.counter, taken)
    counter_next = counter_last - taken + 1
  end
  counter_next = counter_next + count
  return counter_next - count
end

-- The id of a new entry of a stream, `<number>-<ms>`. No two entries have the same one: a number that a failover has lost is used again, but some
-- seconds later. Other shards and processes remember the ids of entries that were carried, settled or read.
local entry_tail = nil
local function new_entry()
  entry_tail = entry_tail or '-' .. integer(now)
  return integer(counter()) .. entry_tail
end

-- A new stamp `<ms>-<number>`, the id of an entry of an index or of the history: its milliseconds are never smaller than those of one given
-- before, whatever the clock does. `count`: the numbers that follow belong to the caller, too.
-- `newest_ms`: F.control.newest_index_ms as text, where a script has read it with others.
local stamp_head, newest_ms = nil, nil
local function new_stamp(count)
  if stamp_head == nil then
    local last = tonumber(newest_ms or call('HGET', ctl, F.control.newest_index_ms) or '0')
    local ms = math.max(now, last)
    if ms > last then
      call('HSET', ctl, F.control.newest_index_ms, ms)
    end
    stamp_head = integer(ms) .. '-'
  end
  return stamp_head .. integer(counter(count))
end

-- Wakes one worker that sleeps on the doorbell; one bell is enough, who takes it rings on. `is_first`: an organization that had no
-- ready work has some, for which a worker that is busy with others need not look long: that is another bell. `mark`: of which pool
-- (pools.lua).
local function ring(is_first, mark)
  local bell = P .. 'bell' .. mark
  local bells = call('LLEN', bell)
  if bells == 0 or is_first and bells == 1 then
    call('RPUSH', bell, is_first and 'f' or '1')
  end
end
