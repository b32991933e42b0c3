-- Creates the functions of a table at its first access; Redis creates all other functions of a script at every call.
local function on_first_use(functions, make)
  setmetatable(functions, {
    __index = function(_, name)
      setmetatable(functions, nil)
      make()
      return functions[name]
    end,
  })
end
