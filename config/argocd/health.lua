-- The health of every kind of posthorn.dev, as Argo CD shows it. It agrees with kstatus: what waits for another object is Progressing,
-- and only what nothing but an edit can help is Degraded. A circuit that is open says so, but is the receiver's trouble: a sync does
-- not fail for it.
local hs = { status = 'Progressing', message = 'waiting for the controller' }
local status = obj.status
if status == nil or status.conditions == nil then return hs end
if status.observedGeneration ~= obj.metadata.generation then
  hs.message = 'waiting for the controller to see the last change'
  return hs
end
local conditions = {}
for _, condition in ipairs(status.conditions) do conditions[condition.type] = condition end
local function said(condition)
  if condition.message == nil or condition.message == '' then return condition.reason end
  return condition.reason .. ': ' .. condition.message
end
local ready, stalled, delivering = conditions.Ready, conditions.Stalled, conditions.Delivering
if stalled ~= nil and stalled.status == 'True' then
  hs.status = 'Degraded'
  hs.message = said(stalled)
elseif ready ~= nil and ready.status == 'True' then
  hs.status = 'Healthy'
  hs.message = said(ready)
  if delivering ~= nil and delivering.status == 'False' then hs.message = said(delivering) end
elseif ready ~= nil then
  hs.message = said(ready)
end
return hs
