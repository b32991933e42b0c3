-- @include "../../shard/includes/shard.lua"
-- @created-on-first-use

-- A limiter that the targets of one application share: in any window of time they get at most so many messages together. `l:<application>`
-- has its windows; F.target.shared_limiter is the application.
-- GCRA cannot do this: with the burst that a limit per hour means it lets through twice of that in an hour.
--
-- `used:<application>` is what was given out, packed: per window (ms) its sixtieths that are not over, `{number, count, …}`, the oldest
-- first; `woken` how many of the targets that were woken have not come to dequeue yet, as far as `until` (ms) is not over.
local shared_limiters
do
  local window_parts = 60
  local woken_ms = 1000
  local limiters_of_call = {}

  local function of(name)
    if limiters_of_call[name] then
      return limiters_of_call[name]
    end
    local stored = call('GET', P .. 'used:' .. name)
    local used = stored and cmsgpack.unpack(stored) or {}
    local limiter = { windows = {}, woken = 0 }
    if used['until'] and used['until'] > now then
      limiter.woken, limiter['until'] = used.woken, used['until']
    end
    for ms, most in string.gmatch(call('HGET', P .. 'l:' .. name, F.limiter.windows) or '', '(%d+) (%d+)') do
      local window = { ms = tonumber(ms), most = tonumber(most), parts = {}, sum = 0 }
      local parts = used[ms] or {}
      window.part_ms = window.ms / window_parts
      local oldest = math.floor((now - window.ms) / window.part_ms)
      for k = 1, #parts, 2 do
        if parts[k] >= oldest then
          window.parts[#window.parts + 1] = parts[k]
          window.parts[#window.parts + 1] = parts[k + 1]
          window.sum = window.sum + parts[k + 1]
        end
      end
      limiter.windows[#limiter.windows + 1] = window
    end
    limiters_of_call[name] = limiter
    return limiter
  end

  -- How many more messages may go now, and else when (ms) the next may.
  local function room(limiter)
    local room, at = math.huge, now
    for _, window in ipairs(limiter.windows) do
      room = math.min(room, window.most - window.sum)
      local left = window.sum
      for k = 1, #window.parts, 2 do
        if left < window.most then
          break
        end
        left = left - window.parts[k + 1]
        at = math.max(at, math.ceil((window.parts[k] + 1) * window.part_ms + window.ms))
      end
    end
    return math.max(0, room), at
  end

  local function charge(limiter, count)
    limiter.is_changed = true
    for _, window in ipairs(limiter.windows) do
      local part, last = math.floor(now / window.part_ms), #window.parts - 1
      window.sum = window.sum + count
      -- A clock that was set back: what is in front of it stays in order.
      if last > 0 and window.parts[last] >= part then
        window.parts[last + 1] = window.parts[last + 1] + count
      else
        window.parts[last + 2], window.parts[last + 3] = part, count
      end
    end
  end

  -- Writes what this script has charged.
  local function write()
    for name, limiter in pairs(limiters_of_call) do
      if limiter.is_changed then
        local used, longest_ms = { woken = limiter.woken, ['until'] = limiter['until'] }, woken_ms
        for _, window in ipairs(limiter.windows) do
          used[integer(window.ms)] = window.parts
          longest_ms = math.max(longest_ms, window.ms + window.part_ms)
        end
        call('SET', P .. 'used:' .. name, cmsgpack.pack(used), 'PX', integer(longest_ms))
      end
    end
  end

  shared_limiters = { woken_ms = woken_ms, of = of, room = room, charge = charge, write = write }
end
