-- Creates the functions of a table at its first access. An include that most calls do not need at all has the line `@created-on-first-use` instead.
local function on_first_use(functions, make)
  setmetatable(functions, {
    __index = function(_, name)
      setmetatable(functions, nil)
      make()
      return functions[name]
    end,
  })
end
