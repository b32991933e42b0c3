-- @include "shard.lua"

-- What a message waits for that has not ended and is not under way: a token of waits.ts, and until when (ms) or ''.

local function limiter_wait(limiter)
  return call('ZSCORE', P .. 'waiting', limiter) or ''
end

-- `n` its target and `t` fields of that: b what blocks it, d, cs, cu, p, mv, pw, lp, io; `state` and `due` of the message.
local function wait_of(n, t, state, due)
  if state ~= 'p' and state ~= 'r' then
    return '', ''
  end
  if state == 'p' and due and tonumber(due) > now then
    return 'at', due
  end
  local blocked = t.b or ''
  if t.p or t.mv == 'a' then
    return 'p' .. (t.pw or ''), ''
  elseif t.cs == 'o' then
    return '!', whole(math.max(tonumber(t.cu or '0'), tonumber(due or '0')))
  elseif state == 'r' and due and tonumber(due) > now then
    return 'due', due
  elseif t.cs == 'h' then
    -- Some probes are under way; more follow when these have gone well.
    return '!', ''
  elseif blocked == '~o' .. n or t.io and blocked == 'cap' then
    return 'order', ''
  elseif blocked == 'cap' or string.sub(blocked, 1, 5) == '~slow' then
    return 'cap', ''
  elseif blocked == '~b' .. n then
    return 'batch', limiter_wait(blocked)
  elseif blocked ~= '' and blocked == t.lp then
    return 'shared', limiter_wait(blocked)
  elseif blocked ~= '' and blocked == t.d then
    if call('HEXISTS', P .. 'l:' .. blocked, 'e') == 1 then
      return 'rate', limiter_wait(blocked)
    end
    return 'lease', ''
  end
  return 'queue', ''
end
