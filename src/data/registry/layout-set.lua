-- Stores the layout of the data, never one older than the stored one (store-layout.ts).
--
-- KEYS[1] layout. ARGV[1] the layout, [2] begun: a migration to it is under way, or done: it has ended.
-- Reply: what is there then, `<layout>` or `<layout> begun`. Data that was migrated before stays migrated.
local stored = redis.call('GET', KEYS[1]) or '0'
local number = tonumber(string.match(stored, '^%d+'))
if not number or number > tonumber(ARGV[1]) or stored == ARGV[1] then
  return stored
end
local wanted = ARGV[2] == 'done' and ARGV[1] or ARGV[1] .. ' begun'
redis.call('SET', KEYS[1], wanted)
return wanted
