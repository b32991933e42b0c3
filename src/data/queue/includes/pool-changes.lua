-- @include "../../shard/includes/pools.lua"
-- @include "../../shard/includes/shard.lua"
-- @created-on-first-use

-- An organization that goes from one pool of workers to another (pools.lua).

-- Puts an organization that has ready targets where the workers of its pool look, and takes it away from those of another one.
local function to_own_pool(org, wrong)
  local own = mark_of(org)
  call('ZREM', P .. 'ready' .. wrong, org)
  if call('EXISTS', P .. 'ready:' .. org) == 1 and not call('ZSCORE', P .. 'ready' .. own, org) then
    call('ZADD', P .. 'ready' .. own, call('HGET', ctl, F.control.virtual_clock .. own) or '0', org)
    ring(true, own)
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
    call('HDEL', P .. 'o:' .. org, F.organization.pool)
  else
    call('HSET', P .. 'o:' .. org, F.organization.pool, mark)
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
