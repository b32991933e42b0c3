import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from '@jest/globals';
import { undocumentedNames } from '../hack/lua-arguments.ts';
import { misnamedFields } from '../hack/lua-fields.ts';
import { withIncludes } from '../hack/lua-includes.ts';
import { unusedMembers } from '../hack/lua-members.ts';
import { foreignIncludes, type LuaFindings, luaFindings } from '../hack/lua-rules.ts';

/** What is found in files of a folder of their own; `s.lua` and `t.lua` are scripts, others are includes. */
function found(files: Record<string, string>): LuaFindings {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-lua-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const urls = (isWanted: (isScript: boolean) => boolean): URL[] =>
    Object.keys(files)
      .filter((name) => isWanted(['s.lua', 't.lua'].includes(name)))
      .map((name) => pathToFileURL(join(folder, name)));
  return luaFindings(
    urls((isScript) => isScript),
    urls((isScript) => !isScript),
    pathToFileURL(`${folder}/`),
  );
}

const base = 'local function base()\n  return 1\nend\n';
const many = (count: number): string => Array.from({ length: count }, (_, k) => `local v${k} = 1\n`).join('');
const sum = (count: number): string => Array.from({ length: count }, (_, k) => `v${k}`).join(' + ');

test.each<[string, Record<string, string>, string[]]>([
  ['a global that Redis does not have', { 's.lua': '\nreturn nothing\n' }, ['s.lua:2: uses the global nothing, which Redis does not have']],
  ['a library that the sandbox leaves out', { 's.lua': 'return os.time()\n' }, ['s.lua:1: uses the global os, which Redis does not have']],
  ['an assignment to a global', { 's.lua': '\nx = 1\n' }, ['s.lua:2: assigns to the global x, which Redis refuses']],
  ['a function that is made a global', { 's.lua': 'function f() end\n' }, ['s.lua:1: assigns to the global f, which Redis refuses']],
  ['an assignment to what Redis gives', { 's.lua': 'redis = nil\n' }, ['s.lua:1: assigns to the global redis, which Redis refuses']],
  [
    'a value of an include that is created on first use',
    {
      's.lua': '-- @include "late.lua"\nreturn late() + limit + list.first\n',
      'late.lua': '-- @created-on-first-use\nlocal limit = 3\nlocal list = { first = 1 }\nlocal function late()\n  return limit\nend\n',
    },
    ['s.lua:2: uses limit of an include that is created on first use, and it is no function and no table'],
  ],
  [
    'a function that uses a later one',
    { 's.lua': 'local function first()\n  return second()\nend\nlocal function second()\n  return 1\nend\nreturn first() + second()\n' },
    ['s.lua:2: uses second before s.lua:4 declares it'],
  ],
  ['a variable that begins with itself', { 's.lua': 'local x = x or 1\nreturn x\n' }, ['s.lua:1: uses x before s.lua:1 declares it']],
  [
    'a local of a block that is over',
    { 's.lua': 'do\n  local x = 1\n  redis.call(x)\nend\nreturn x\n' },
    ['s.lua:5: uses the global x, which Redis does not have'],
  ],
  [
    'an include that uses what another one has, without including it',
    { 's.lua': '-- @include "a.lua"\nreturn a()\n', 'a.lua': '-- For tests.\nlocal function a()\n  return base()\nend\n', 'b.lua': base },
    ['a.lua:3: uses the global base, which Redis does not have; b.lua declares it', 'b.lua:1: is included by no script'],
  ],
  [
    'an include that uses what its script includes',
    {
      's.lua': '-- @include "b.lua"\n-- @include "a.lua"\nreturn a() + base()\n',
      'a.lua': 'local function a()\n  return base()\nend\n',
      'b.lua': base,
    },
    ['a.lua:2: uses base of b.lua without including that file'],
  ],
  [
    'a script that uses what its include includes',
    { 's.lua': '-- @include "a.lua"\nreturn a() + base()\n', 'a.lua': '-- @include "b.lua"\nlocal a = base\n', 'b.lua': base },
    ['s.lua:2: uses base of b.lua without including that file'],
  ],
  [
    'an unused include',
    { 's.lua': '\n-- @include "b.lua"\nreturn 1\n', 't.lua': '-- @include "b.lua"\nreturn base()\n', 'b.lua': base },
    ['s.lua:2: includes b.lua and uses nothing of it'],
  ],
  [
    'an include that stands twice',
    { 's.lua': '-- @include "b.lua"\n-- @include "b.lua"\nreturn base()\n', 'b.lua': base },
    ['s.lua:2: includes b.lua again'],
  ],
  ['an include of no script', { 's.lua': 'return 1\n', 'b.lua': base }, ['b.lua:1: is included by no script']],
  ['a missing include', { 's.lua': '\n-- @include "b.lua"\n' }, ['s.lua:2: cannot read the include b.lua']],
  [
    'a circular include',
    {
      's.lua': '-- @include "a.lua"\nreturn a\n',
      'a.lua': '-- @include "b.lua"\nlocal a = b\n',
      'b.lua': '-- @include "a.lua"\nlocal b = a\n',
    },
    ['a.lua:1: circular include: b.lua → a.lua → b.lua', 'b.lua:1: circular include: a.lua → b.lua → a.lua'],
  ],
  ['an unused function', { 's.lua': 'local function f() end\nreturn 1\n' }, ['s.lua:1: declares the function f, which nothing uses']],
  [
    'a function that only calls itself',
    { 's.lua': 'local function f()\n  return f()\nend\nreturn 1\n' },
    ['s.lua:1: declares the function f, which nothing uses'],
  ],
  [
    'a function of an include that no script uses',
    {
      's.lua': '-- @include "b.lua"\nreturn base()\n',
      't.lua': '-- @include "b.lua"\nreturn base()\n',
      'b.lua': `${base}\nlocal function more()\n  return 1\nend\n`,
    },
    ['b.lua:5: declares the function more, which nothing uses'],
  ],
  [
    'a variable that is only assigned to',
    { 's.lua': 'if redis then\n  local x = 1\n  x = 2\nend\n' },
    ['s.lua:2: declares the variable x, which nothing uses'],
  ],
  [
    'a name that is declared twice at the top',
    { 's.lua': '-- @include "b.lua"\nlocal kept = base()\nlocal function base()\n  return kept\nend\nreturn base()\n', 'b.lua': base },
    ['s.lua:3: declares base again, after b.lua:1'],
  ],
  [
    'more locals than Lua allows',
    { 's.lua': `${many(201)}return ${sum(201)}\n` },
    ['s.lua:1: has 201 locals in scope at a time; Lua allows 200 per function'],
  ],
  [
    'a function with more locals of others than Lua allows',
    { 's.lua': `${many(61)}local function all()\n  return ${sum(61)}\nend\nreturn all()\n` },
    ['s.lua:62: has 61 locals of functions around it; Lua allows 60 per function'],
  ],
  [
    'an argument that no header says',
    { 's.lua': '-- ARGV[1] id.\nlocal id = ARGV[1]\nreturn id .. ARGV[2]\n' },
    ['s.lua:3: uses ARGV[2], which no header says'],
  ],
  [
    'a key that no header says',
    { 's.lua': '-- KEYS[1] lock.\n-- ARGV[1] id, [2] text.\nreturn KEYS[2] .. ARGV[1] .. ARGV[2]\n' },
    ['s.lua:3: uses KEYS[2], which no header says'],
  ],
  ['arguments without a header', { 's.lua': 'return #ARGV\n' }, ['s.lua:1: uses ARGV, which no header says']],
  [
    'an argument that is not used',
    { 's.lua': '-- ARGV[1] id, [2] text.\n-- Reply: [3].\nreturn ARGV[1]\n' },
    ['s.lua:1: says what ARGV[2] is and does not use it'],
  ],
  ['a text that does not parse', { 's.lua': '-- @include "b.lua"\nreturn base(\n', 'b.lua': base }, ["s.lua:2: ')' expected near '<eof>'"]],
])('the check of the Lua finds %s', (_, files, complaints) => {
  expect(found(files).complaints).toEqual(complaints);
});

test('the check of the Lua warns before a function has as many locals as Lua allows', () => {
  const { complaints, warnings } = found({
    's.lua': `${many(180)}return ${sum(180)}\n`,
    't.lua': `${many(176)}for k, v in pairs({}) do\n  redis.call(k, v, ${sum(176)})\nend\n`,
  });
  expect(complaints).toEqual([]);
  // A loop keeps three of its own beside those that it declares.
  expect(warnings).toEqual([
    's.lua:1: has 180 locals in scope at a time; Lua allows 200 per function',
    't.lua:1: has 181 locals in scope at a time; Lua allows 200 per function',
  ]);
});

test('the check of the Lua has nothing against a script that keeps the rules', () => {
  const script = `#!lua flags=allow-oom
-- KEYS[1] queue, [2] \`~\`, which never exists.
-- ARGV[1] worker; then per item [2…] its id.
-- @include "a.lua"
local later
local function walk(node, _)
  for k, v in pairs(node) do
    later(k, walk(v))
  end
end
later = function(...)
  local first, rest = ...
  repeat
    local done = first == rest
  until done
  return redis.call('SET', KEYS[1], cjson.encode({ id = first, [rest] = string.format('%d', a()) }))
end
for k = 2, #ARGV do
  walk({ ARGV[k] }, ARGV[1])
end
`;
  expect(found({ 's.lua': script, 'a.lua': '-- @include "b.lua"\n\nlocal function a()\n  return base()\nend\n', 'b.lua': base })).toEqual({
    complaints: [],
    warnings: [],
    includes: [],
  });
});

test('the check of the Lua says which includes a file should name', () => {
  const { includes } = found({
    's.lua': '-- @include "a.lua"\n-- @include "c.lua"\nreturn base() + d() + c\n',
    'a.lua': 'local a = b\n',
    'b.lua': `${base}local b = base()\n`,
    'c.lua': '-- @include "a.lua"\nlocal c = 1\n',
    'd.lua': '-- @include "c.lua"\nlocal function d()\n  return c\nend\n',
  });
  const names = includes.map(({ file, wanted }) => [file, ...wanted].map((each) => each.pathname.split('/').at(-1)));
  expect(names.toSorted()).toEqual([['a.lua', 'b.lua'], ['c.lua'], ['s.lua', 'c.lua', 'b.lua', 'd.lua']]);
});

test.each([
  [
    'where they stood',
    's.lua',
    '#!lua\n-- ARGV[1] id.\n-- @include "includes/a.lua"\n\nreturn 1\n',
    '#!lua\n-- ARGV[1] id.\n<new>\nreturn 1\n',
  ],
  ['at the end of the header of a script', 's.lua', '#!lua\n-- ARGV[1] id.\n\nreturn 1\n', '#!lua\n-- ARGV[1] id.\n<new>\nreturn 1\n'],
  ['at the top of an include', 'includes/c.lua', '-- About c.\nlocal c = 1\n', '<new>\n-- About c.\nlocal c = 1\n'],
])('include lines are written %s', (_, name, text, expected) => {
  const file = new URL(name, 'file:///scripts/');
  const wanted = ['includes/a.lua', 'includes/b.lua'].map((each) => new URL(each, 'file:///scripts/'));
  const prefix = name.startsWith('includes/') ? '' : 'includes/';
  const lines = `-- @include "${prefix}a.lua"\n-- @include "${prefix}b.lua"\n`;
  expect(withIncludes(text, file, wanted)).toBe(expected.replace('<new>', lines));
});

test('an include of a folder that the folder of the file may not use is a violation; outside of the table all may be used', () => {
  const root = mkdtempSync(join(tmpdir(), 'posthorn-lua-'));
  const files = {
    'src/data/shard/a.lua': '../queue/b.lua',
    'src/data/queue/b.lua': '../shard/c.lua',
    'src/other/d.lua': '../data/queue/b.lua',
  };
  for (const [name, include] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), `#!lua\n-- @include "${include}"\n`);
  }
  const urls = Object.keys(files).map((name) => pathToFileURL(join(root, name)));
  expect(foreignIncludes(urls, { 'data/shard': [], 'data/queue': ['data/shard'] }, pathToFileURL(`${root}/`))).toEqual([
    'src/data/shard/a.lua:2: data/shard may not use src/data/queue/b.lua (hack/dependencies.cjs)',
  ]);
});

const tables = {
  target: { route: 'r', circuitState: 'cs' },
  message: { event: 'e' },
  control: { counter: 'n' },
  outbox: { kind: 'k', message: 'm' },
  alerts: { failed: 'f' },
  alertState: { incidentOf: 'i:' },
};
const keys = { 't:': 'target', 'm:': 'message', ctl: 'control', out: 'outbox', 'KEYS[2]': 'outbox', 'al:': ['alerts', 'alertState'] };

test.each<[string, string, string[]]>([
  ['a field by its short name', "call('HGET', P .. 't:' .. n, 'cs')", ["s.lua:1: names a field 'cs', which is F.target.circuit_state"]],
  [
    'each of several',
    "call('HMGET', P .. 't:' .. n, 'r', F.target.route,\n  'cs')",
    ["s.lua:1: names a field 'r', which is F.target.route", "s.lua:2: names a field 'cs', which is F.target.circuit_state"],
  ],
  ['a field beside its value', "call('HSET', P .. 't:' .. n, 'r', 'cs')", ["s.lua:1: names a field 'r', which is F.target.route"]],
  [
    'a field of a key in a local',
    "local function f(n)\n  local key = P .. 'm:' .. n\n  redis.pcall('HDEL', key, 'e')\nend",
    ["s.lua:3: names a field 'e', which is F.message.event"],
  ],
  ['a field of the shard', "call('HINCRBY', ctl, 'n', 1)", ["s.lua:1: names a field 'n', which is F.control.counter"]],
  [
    'a short name that no table has',
    "call('HEXISTS', P .. 't:' .. n, 'zz')",
    ["s.lua:1: names a field 'zz', which the table of target does not have"],
  ],
  [
    'a field of an entry',
    "call('XADD', P .. 'out', entry, F.outbox.kind, 'x', 'm', id)",
    ["s.lua:1: names a field 'm', which is F.outbox.message"],
  ],
  [
    'a field of an entry of a stream with a limit',
    "call('XADD', P .. 'out', 'MAXLEN', '~', 100, entry, 'k', 'm')",
    ["s.lua:1: names a field 'k', which is F.outbox.kind"],
  ],
  [
    'a field of an entry of a stream with an exact limit',
    "call('XADD', KEYS[2], 'MAXLEN', 100, entry, F.outbox.kind, 'm', 'k', id)",
    ["s.lua:1: names a field 'k', which is F.outbox.kind"],
  ],
  [
    'the beginning of a field',
    "call('HGET', P .. 'al:' .. route, 'i:' .. channel)",
    ["s.lua:1: names a field 'i:', which is F.alert_state.incident_of"],
  ],
  [
    'a beginning that no table of the hash has',
    "call('HGET', P .. 'al:' .. route, 'q:' .. channel)",
    ["s.lua:1: names a field 'q:', which the table of alerts or alertState does not have"],
  ],
  [
    'a field of another hash where a hash has two tables',
    "call('HGET', P .. 'al:' .. route, F.target.route)",
    ['s.lua:1: takes a field of target for a hash of alerts or alert_state'],
  ],
  ['a field of another hash', "call('HGET', P .. 'm:' .. n, F.target.route)", ['s.lua:1: takes a field of target for a hash of message']],
])('the check of the Lua refuses %s', (_, text, complaints) => {
  expect(misnamed(text)).toEqual(complaints);
});

test.each([
  ['words', "call('HSET', P .. 't:' .. n, F.target.route, 'cs')"],
  ['words of two tables', "call('HMGET', P .. 'al:' .. route, F.alerts.failed, F.alert_state.incident_of .. channel)"],
  ['a word that is the field itself', "call('HGET', ctl, 'full')"],
  ['a hash without a table', "call('HGET', P .. 'refs', 'r')"],
  ['a key that it does not know', "local key = P .. 't:' .. n\nfor key in pairs({}) do\n  call('HGET', key, 'r')\nend"],
])('the check of the Lua has nothing against %s', (_, text) => {
  expect(misnamed(text)).toEqual([]);
});

function misnamed(text: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-lua-'));
  const file = join(folder, 's.lua');
  writeFileSync(file, text);
  return misnamedFields([pathToFileURL(file)], tables, keys, pathToFileURL(`${folder}/`));
}

test('the check of the Lua finds a value that a script takes by name and its header does not name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-lua-'));
  const file = pathToFileURL(join(folder, 's.lua'));
  const header = '#!lua\n-- ARGV[1] by name: id; max_records of each.\n';
  writeFileSync(
    file,
    `${header}local given = decoded(ARGV[1])\n-- Not given.other.\nreturn given.id .. given.max_records .. given.max_bytes .. other.given.kind\n`,
  );
  expect(undocumentedNames([file], pathToFileURL(`${folder}/`))).toEqual(['s.lua:5: takes max_bytes, which the header does not name']);
});

test('the check of the Lua finds a script that takes values by name without a local for them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-lua-'));
  const file = pathToFileURL(join(folder, 's.lua'));
  writeFileSync(file, '-- ARGV[1] by name: id.\nreturn decoded(ARGV[1]).id\n');
  expect(undocumentedNames([file], pathToFileURL(`${folder}/`))).toEqual([
    's.lua:2: takes values by name other than with local <name> = decoded(ARGV[1])',
  ]);
});

test('the check of the Lua finds a member of a table of an include that no file uses', () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-lua-'));
  mkdirSync(join(folder, 'includes'));
  const files = {
    'includes/a.lua': 'local a = {}\n\nfunction a.used()\nend\n\n-- As a.unused.\nfunction a.unused()\n  a.used()\nend\n',
    'includes/b.lua': 'local b\ndo\n  local function add()\n  end\n\n  b = { add = add, count = add }\nend\n',
    'includes/c.lua': 'local c\ndo\n  c = {\n    first = 1,\n    second = 2,\n  }\nend\n',
    's.lua': 'b.add()\nreturn c.second\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const urls = Object.keys(files).map((name) => pathToFileURL(join(folder, name)));
  expect(unusedMembers(urls, pathToFileURL(`${folder}/`))).toEqual([
    'includes/a.lua:7: gives a the member unused, which nothing uses',
    'includes/b.lua:6: gives b the member count, which nothing uses',
    'includes/c.lua:4: gives c the member first, which nothing uses',
  ]);
});

test('the check of the Lua finds a word that no table has', () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-lua-'));
  const file = pathToFileURL(join(folder, 's.lua'));
  writeFileSync(file, '\nreturn F.target.route .. F.target.state\n');
  expect(luaFindings([file], [], pathToFileURL(`${folder}/`), tables).complaints).toEqual([
    's.lua:2: no table of fields has F.target.state',
  ]);
});
