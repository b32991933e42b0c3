-- @include "shard.lua"

-- What a message waits for that has not ended and is not under way: a token of waits.ts, and until when (ms) or ''.

local function limiter_wait(limiter)
  return call('ZSCORE', P .. 'waiting', limiter) or ''
end

-- `n` its target and `t` the fields of that which decide it; `state` and `due` of the message.
local function wait_of(n, t, state, due)
  if state ~= 'p' and state ~= 'r' then
    return '', ''
  end
  if state == 'p' and due and tonumber(due) > now then
    return 'at', due
  end
  local blocked = t[F.target.blocked_by] or ''
  if t[F.target.paused_since_ms] or t[F.target.moves_on] == 'a' then
    return 'p' .. (t[F.target.paused_for] or ''), ''
  elseif t[F.target.circuit_state] == 'o' then
    return '!', integer(math.max(tonumber(t[F.target.cooldown_end_ms] or '0'), tonumber(due or '0')))
  elseif state == 'r' and due and tonumber(due) > now then
    return 'due', due
  elseif t[F.target.circuit_state] == 'h' then
    -- Some probes are under way; more follow when these have gone well.
    return '!', ''
  elseif blocked == '~o' .. n or t[F.target.in_order] and blocked == 'cap' then
    return 'order', ''
  elseif blocked == 'cap' or string.sub(blocked, 1, 5) == '~slow' then
    return 'cap', ''
  elseif blocked == '~b' .. n then
    return 'batch', limiter_wait(blocked)
  elseif blocked ~= '' and blocked == t[F.target.shared_limiter] then
    return 'shared', limiter_wait(blocked)
  elseif blocked ~= '' and blocked == t[F.target.destination] then
    if call('HEXISTS', P .. 'l:' .. blocked, F.limiter.emission_us) == 1 then
      return 'rate', limiter_wait(blocked)
    end
    return 'lease', ''
  end
  return 'queue', ''
end
