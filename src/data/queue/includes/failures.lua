-- @include "../../shard/includes/shard.lua"

-- Attempts are kept at hand, the newest first, as `<message or batch>/<attempt> …`: of a target its newest failed ones, F.target.recent_failures; of one that
-- is a webhook endpoint the newest of all instead, `ra:<target>`.
local with_failure, keep_attempts
do
  local failures_kept, attempts_kept = 5, 10
  local attempts_kept_s = 2764800

  local function newest(attempts, most)
    local kept = {}
    for attempt in string.gmatch(attempts, '%S+') do
      kept[#kept + 1] = attempt
      if #kept == most then
        break
      end
    end
    return table.concat(kept, ' ')
  end

  function with_failure(failures, id, attempt)
    return newest(id .. '/' .. attempt .. ' ' .. (failures or ''), failures_kept)
  end

  function keep_attempts(n, attempts)
    local key = P .. 'ra:' .. n
    call('SET', key, newest(attempts .. (call('GET', key) or ''), attempts_kept), 'EX', attempts_kept_s)
  end
end
