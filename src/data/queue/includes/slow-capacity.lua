-- @include "account.lua"
-- @include "../../shard/includes/shard.lua"
-- @created-on-first-use

-- Which slow attempts may begin (slow.lua).

-- The places of `slots` (of a pool, or of one worker) that are left for an account that holds `own` of the `held`: those of any slow
-- attempt, and those of a probe; and whether it is its own share that leaves no place for either. `SlotShares` of the
-- worker (slot-shares.ts) has the same bounds.
local function slow_places(slots, held, own)
  local limit = math.max(1, math.floor(slots / 2))
  local own_limit, band = math.max(1, math.floor(limit / 2)), math.floor(limit / 2)
  local own_left, own_probes = own_limit - own, math.max(1, math.floor(band / 4))
  -- It leaves as many places as it holds, up to its share, so that several accounts that hang leave one for the next.
  local probes = math.min(limit + band - math.min(own, own_probes) - held, own_left + own_probes)
  return math.min(limit - held, own_left), probes, own_left
end

-- The worker that asks: its slots, how many slow attempts it has under way in all shards, and the same by account.
local slow_of_worker = nil
local function slow_worker(text)
  if not slow_of_worker then
    local slots, held, accounts = string.match(text, '^(%d+) (%d+)(.*)$')
    slow_of_worker = { slots = tonumber(slots), held = tonumber(held), own = {} }
    for account, count in string.gmatch(accounts, ' (%S+) (%d+)') do
      slow_of_worker.own[account] = tonumber(count)
    end
  end
  return slow_of_worker
end

-- How many more slow attempts may begin; and else under which limiter to wait. `text`: what the worker has (slow_worker).
local function slow_capacity(org, mark, slots, under_way, text)
  local account = account_of(org)
  -- What nobody has released by its deadline, as of a target that is gone.
  call('ZREMRANGEBYSCORE', P .. 'slow' .. mark, '-inf', now)
  call('ZREMRANGEBYSCORE', P .. 'slow:' .. account, '-inf', now)
  local own = call('ZCARD', P .. 'slow:' .. account)
  local room, probes, own_left = slow_places(slots, call('ZCARD', P .. 'slow' .. mark), own)
  local worker = slow_worker(text)
  local worker_room, worker_probes, worker_own_left = slow_places(worker.slots, worker.held, worker.own[account] or 0)
  room = math.min(room, worker_room)
  if room > 0 then
    -- Each of the organization's targets that has work gets its part, so that one that hangs leaves places to those not known yet.
    return math.max(1, math.floor(room / call('ZCARD', P .. 'ready:' .. org))), nil
  end
  if under_way == 0 and math.min(probes, worker_probes) > 0 then
    return 1, nil
  end
  return 0, math.min(own_left, worker_own_left) <= 0 and '~slow:' .. account or '~slow' .. mark
end

-- Notes slow attempts that begin.
local function slow_begin(org, given)
  local account = account_of(org)
  slow_of_worker.held = slow_of_worker.held + given
  slow_of_worker.own[account] = (slow_of_worker.own[account] or 0) + given
end
