-- The part of telescope that redis-lua's tests use: contexts, hooks and assertions. Telescope is a
-- framework for tests, which Debian does not have. Each test runs as soon as it is described.
local telescope = {}

local contexts = {}
local passed, failed = 0, 0

local function run_hooks(kind)
  for _, context in ipairs(contexts) do
    for _, hook in ipairs(context[kind]) do hook() end
  end
end

function context(name, describe)
  table.insert(contexts, {name = name, before = {}, after = {}})
  describe()
  table.remove(contexts)
end

function before(hook) table.insert(contexts[#contexts].before, hook) end
function after(hook) table.insert(contexts[#contexts].after, hook) end

function test(name, body)
  local names = {}
  for _, at in ipairs(contexts) do table.insert(names, at.name) end
  table.insert(names, name)
  local is_right, problem = pcall(function() run_hooks("before"); body() end)
  pcall(run_hooks, "after")
  if is_right then
    passed = passed + 1
  else
    failed = failed + 1
    print("FAILED " .. table.concat(names, " / ") .. "\t" .. tostring(problem))
  end
end

function telescope.make_assertion(name, _, holds)
  _G["assert_" .. name] = function(...)
    if not holds(...) then error("assert_" .. name .. " of " .. tostring((...)), 2) end
  end
  _G["assert_not_" .. name] = function(...)
    if holds(...) then error("assert_not_" .. name .. " of " .. tostring((...)), 2) end
  end
end

telescope.make_assertion("equal", nil, function(a, b) return a == b end)
telescope.make_assertion("true", nil, function(a) return a == true end)
telescope.make_assertion("false", nil, function(a) return a == false end)
telescope.make_assertion("nil", nil, function(a) return a == nil end)
telescope.make_assertion("empty", nil, function(a) return next(a) == nil end)
telescope.make_assertion("type", nil, function(a, b) return type(a) == b end)
telescope.make_assertion("error", nil, function(f) return not pcall(f) end)
telescope.make_assertion("greater_than", nil, function(a, b) return a > b end)
telescope.make_assertion("gte", nil, function(a, b) return a >= b end)
telescope.make_assertion("less_than", nil, function(a, b) return a < b end)
telescope.make_assertion("lte", nil, function(a, b) return a <= b end)
telescope.make_assertion("match", nil, function(a, b) return a:match(b) ~= nil end)

function telescope.print_counts() print(passed .. " passed, " .. failed .. " failed") end

package.loaded.telescope = telescope
return telescope
