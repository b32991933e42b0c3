-- @include "../../shard/includes/shard.lua"

-- Messages that somebody has cancelled. They have F.message.cancellation. One that a worker holds, or that is a member of a batch, has it before it
-- ends: a success of what is under way stays one, and whatever else would have followed, the message becomes a dead letter. Cancelling is no failure of the target:
-- it counts for no circuit, alert, rate or event of Posthorn's own (finish.lua).
local cancelled = {}
do
  cancelled.reason = 'cancelled'

  -- What was noted first stays.
  function cancelled.note(id, who)
    call('HSETNX', P .. 'm:' .. id, F.message.cancellation, whole(now) .. ' ' .. who)
  end
end
