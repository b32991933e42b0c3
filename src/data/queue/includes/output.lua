-- Outputs of transforms are kept with the event: hash `y:<event>`, field the route, value as event-output.ts has it. In the hash of
-- a message F.message.has_output means that one is kept for it: `1` that of its route, else the field of its own, when it came from another shard
-- with another one.
local function output_field(y, route)
  return y == '1' and route or y
end
