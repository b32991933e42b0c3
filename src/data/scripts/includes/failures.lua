-- The newest failed attempts of a target are kept at hand, the newest first: rf in its hash, `<message or batch>/<attempt> …`.
local failures_kept = 5
local function with_failure(failures, id, attempt)
  local all, kept = id .. '/' .. attempt, 1
  for failure in string.gmatch(failures or '', '%S+') do
    if kept < failures_kept then
      all, kept = all .. ' ' .. failure, kept + 1
    end
  end
  return all
end
