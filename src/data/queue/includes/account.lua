-- The account of a name in Redis: the organization itself, also for the names that it has beside its own, `+<org>` for webhooks and
-- `~<org>` for alerts (core/account.ts). Shares are per account.
local function account_of(org)
  local first = string.byte(org)
  return (first == 43 or first == 126) and string.sub(org, 2) or org
end

-- The accounts of a text, as a set, and how many they are.
local function accounts_of(text)
  local accounts, count = {}, 0
  for account in string.gmatch(text, '%S+') do
    accounts[account] = true
    count = count + 1
  end
  return accounts, count
end
