-- @include "../../shard/includes/shard.lua"

-- Cancelled messages. They have F.message.cancellation. A message that a worker holds, or that is a member of a batch, has it before it
-- ends: a success of the attempt under way counts, after any other result the message becomes a dead letter. A cancellation is no failure of the target:
-- it counts for no circuit, alert, rate or event of Posthorn's own (finish.lua).
local cancelled = {}
do
  cancelled.reason = 'cancelled'

  -- What was noted first stays.
  function cancelled.note(id, who)
    call('HSETNX', P .. 'm:' .. id, F.message.cancellation, integer(now) .. ' ' .. who)
  end
end
