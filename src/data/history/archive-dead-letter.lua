#!lua flags=allow-oom
-- Archives dead letters.
--
-- KEYS: see ../shard/includes/shard.lua. ARGV the messages, at most 100.
-- Reply: per message 1 archived, now or before; 0 when it is no dead letter.
-- @include "../shard/includes/shard.lua"
-- @include "../queue/includes/status-counts.lua"
-- @include "../queue/includes/unfinished.lua"
-- @include "../queue/includes/archive-dead-letter.lua"

local outcomes = {}
for at, message in ipairs(ARGV) do
  local status = call('HGET', P .. 'm:' .. message, F.message.status)
  outcomes[at] = (status == 'q' or status == 'x') and 1 or 0
  if status == 'q' then
    archive_dead_letter(message)
  end
end
write_status_counts()
write_unfinished()
return outcomes
