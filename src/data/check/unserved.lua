#!lua flags=no-writes
-- Finds targets of which messages are queued that no worker would ever be given: such as wait for nothing that comes.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV: targets.
-- Reply: per target that is found {target, the first of its queued messages, why}.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/pools.lua"
-- @include "../queue/includes/lanes.lua"

-- In the turn of its own pool, or of the default one, which passes it on (to_own_pool).
local function has_turn(org)
  return call('ZSCORE', P .. 'ready' .. mark_of(org), org) or call('ZSCORE', P .. 'ready', org)
end

local function has_work_under_way(n)
  for _, lane in ipairs({ n, retry_lane(n) }) do
    local pending = redis.pcall('XPENDING', P .. 'w:' .. lane, 'g')
    if not failed(pending) and pending[1] > 0 then
      return true
    end
  end
  -- A group that was made again knows of none.
  for _, member in ipairs(call('ZRANGE', P .. 'held', 0, -1)) do
    if number_of_lane(member) == n then
      return true
    end
  end
  return false
end

-- Why the target never comes to its turn; nil: it does, or once its pause is over.
local function obstacle(n)
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.blocked_by, F.target.paused_since_ms, F.target.circuit_state)
  local org, blocked, paused, circuit = t[1], t[2], t[3], t[4]
  if not org then
    return 'is gone'
  elseif paused then
    return nil
  elseif call('ZSCORE', P .. 'ready:' .. org, n) then
    return not has_turn(org) and 'is ready, but its organization has no turn' or nil
  elseif not blocked then
    return 'is not ready, and nothing blocks it'
  elseif blocked == 'cap' then
    return not has_work_under_way(n) and 'is at its cap, and has no work under way' or nil
  elseif blocked == '!' then
    local ends = circuit == 'o' and call('ZSCORE', P .. 'waiting', '!' .. n)
    return not ends and 'waits for its circuit, which has no end of a cooldown' or nil
  end
  local wakes = call('ZSCORE', P .. 'wait:' .. blocked, n) and call('ZSCORE', P .. 'waiting', blocked)
  return not wakes and 'waits for ' .. blocked .. ', which does not wake it' or nil
end

local found = {}
for _, n in ipairs(ARGV) do
  local entry = unread(n, 1)[1] or unread(retry_lane(n), 1)[1]
  local why = entry and obstacle(n)
  if why then
    found[#found + 1] = { n, entry[2][2], why }
  end
end
return found
