-- @include "../../shard/includes/shard.lua"
-- @include "../../shard/includes/target.lua"
-- @include "lanes.lua"
-- @include "failover.lua"
-- @created-on-first-use

-- Guests of a target are messages that came from another destination. They move on once the route does not name the target any more (F.target.moves_on is `g`,
-- failover.lua), also while something keeps the target from sending. A script reads a bounded number of unread entries, and each of them once:
-- F.target.seen_fresh_entry and F.target.seen_retry_entry name the last one of the lane of fresh messages and of that of retries. The next setting of the
-- target deletes them. What is appended later has a larger id.
local guest_looks = 100

-- Targets with entries that the script has not looked at.
local with_unseen = {}

local function send_guests_away(n, t)
  local seen, has_moved = {}, false
  for _, lane in ipairs({ n, t[F.target.has_retry_lane] and retry_lane(n) or nil }) do
    local field = lane == n and F.target.seen_fresh_entry or F.target.seen_retry_entry
    local entries = unread(lane, guest_looks + 1, t[field])
    for k = 1, math.min(guest_looks, #entries) do
      local entry, id = entries[k][1], entries[k][2][2]
      local guest = failover.guest_of(id)
      local place = guest and failover.next_place(guest, t[F.target.failover_targets], t[F.target.moves_on])
      if place then
        failover.move_out(lane, entries[k], guest, n, place, 'destination_unavailable')
        has_moved = true
      end
      seen[field] = entry
    end
    if #entries > guest_looks then
      with_unseen[n] = true
    end
    guest_looks = guest_looks - math.min(guest_looks, #entries)
  end
  for field, entry in pairs(seen) do
    call('HSET', P .. 't:' .. n, field, entry)
  end
  if has_moved then
    remove_drained(n)
  end
end

-- At the end of the script: a target with entries that it has not looked at is ready, whatever blocks it, so that it is visited again.
local function go_on_with_guests()
  for n in pairs(with_unseen) do
    local blocked = call('HGET', P .. 't:' .. n, F.target.blocked_by)
    if blocked then
      unblock(n, blocked)
    end
    activate(n)
  end
end
