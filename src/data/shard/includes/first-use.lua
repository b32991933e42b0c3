-- Makes the functions of a table when one of them is first asked for: in every call Redis makes all other functions that a script has.
local function on_first_use(functions, make)
  setmetatable(functions, {
    __index = function(_, name)
      setmetatable(functions, nil)
      make()
      return functions[name]
    end,
  })
end
