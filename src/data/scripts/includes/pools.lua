-- Workers may be of several pools, and an organization is served by those of one. What each pool has for itself ends with its mark,
-- `@<pool>`, or '' of the default pool: `ready`, `bell`, `slow`, and of `ctl` slots, vt and az. `o:<org>` has pl, the mark of another pool than
-- the default one; `pool<mark>` is the set of its organizations, `pools` the set of these marks.
local marks = {}

local function mark_of(org)
  if not marks[org] then
    marks[org] = call('HGET', P .. 'o:' .. org, 'pl') or ''
  end
  return marks[org]
end

-- Rings for every pool that has ready work.
local function ring_ready()
  if call('EXISTS', P .. 'ready') == 1 then
    ring(false, '')
  end
  for _, mark in ipairs(call('SMEMBERS', P .. 'pools')) do
    if call('EXISTS', P .. 'ready' .. mark) == 1 then
      ring(false, mark)
    end
  end
end

-- Rings for one worker of each pool: what there is to do any of them can.
local function ring_all()
  ring(false, '')
  for _, mark in ipairs(call('SMEMBERS', P .. 'pools')) do
    ring(false, mark)
  end
end

-- Puts an organization that has ready targets where the workers of its pool look, and takes it away from those of another one.
local function to_own_pool(org, wrong)
  local own = mark_of(org)
  call('ZREM', P .. 'ready' .. wrong, org)
  if call('EXISTS', P .. 'ready:' .. org) == 1 and not call('ZSCORE', P .. 'ready' .. own, org) then
    call('ZADD', P .. 'ready' .. own, call('HGET', ctl, 'vt' .. own) or '0', org)
    ring(true, own)
  end
end

-- Releases that know of no pools put every organization into the `ready` of the default one.
local function correct_pools(most)
  if call('EXISTS', P .. 'pools') == 0 then
    return
  end
  for _, org in ipairs(call('ZRANGE', P .. 'ready', 0, most - 1)) do
    if mark_of(org) ~= '' then
      to_own_pool(org, '')
    end
  end
end

-- Gives an organization to a pool.
local function set_pool(org, mark)
  local old = mark_of(org)
  if old == mark then
    return
  end
  marks[org] = mark
  if mark == '' then
    call('HDEL', P .. 'o:' .. org, 'pl')
  else
    call('HSET', P .. 'o:' .. org, 'pl', mark)
    call('SADD', P .. 'pools', mark)
    call('SADD', P .. 'pool' .. mark, org)
  end
  if old ~= '' then
    call('SREM', P .. 'pool' .. old, org)
    if call('EXISTS', P .. 'pool' .. old) == 0 then
      call('SREM', P .. 'pools', old)
      call('DEL', P .. 'bell' .. old)
    end
  end
end
