-- Returns the value of a JSON text. A string of JavaScript may have half of a surrogate pair, which its JSON escapes and cjson refuses: it becomes U+FFFD.
local function decoded(json)
  if string.find(json, '\\u', 1, true) then
    -- JSON has no raw control character, so \1 replaces an escaped backslash meanwhile.
    json = string.gsub(json, '\\\\', '\1')
    json = string.gsub(json, '\\u[dD][89a-fA-F]%x%x', '\\ufffd')
    json = string.gsub(json, '\1', '\\\\')
  end
  return cjson.decode(json)
end
