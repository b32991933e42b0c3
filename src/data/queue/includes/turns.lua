-- @include "account.lua"
-- @include "../../shard/includes/shard.lua"

-- Turns of organizations, which stand by their start tags in the sorted set `ready`.
local names_per_account = 3

-- The organization whose turn it is, its start, how many there are for what is left, and which were passed over; nil: there is none.
-- The names of the account `dominant` go behind all others, those of the accounts `without` get nothing.
local function next_organization(ready, dominant, without, without_count)
  local most = names_per_account * (without_count + (dominant == '' and 0 or 1))
  local first = call('ZRANGE', ready, 0, most, 'WITHSCORES')
  if not first[1] then
    return nil
  end
  local count, passed, of_dominant = call('ZCARD', ready), {}, nil
  for k = 1, #first, 2 do
    local account = account_of(first[k])
    if not without[account] and account ~= dominant then
      return first[k], tonumber(first[k + 1]), count - #passed, passed
    end
    if not without[account] then
      of_dominant = of_dominant or k
    end
    passed[#passed + 1] = first[k]
  end
  if of_dominant then
    return first[of_dominant], tonumber(first[of_dominant + 1]), count, {}
  end
  return nil
end

-- Whether one of the `count` organizations in `ready` is neither of the account `dominant` nor of one of those `without`.
local function has_others(ready, dominant, without, count)
  local function subtract(account)
    for _, name in ipairs({ account, '+' .. account, '~' .. account }) do
      if call('ZSCORE', ready, name) then
        count = count - 1
      end
    end
  end
  subtract(dominant)
  for account in pairs(without) do
    if account ~= dominant then
      subtract(account)
    end
  end
  return count > 0
end
