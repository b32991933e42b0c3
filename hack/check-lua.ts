// Fails when a Lua script of Redis, with its includes, uses what it does not have, or has what nothing uses (lua-rules.ts). With --write it corrects the
// include lines first.
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { registryFields } from '../src/data/registry/registry-keys.ts';
import { hashFields, hashKeys } from '../src/data/shard/hash-fields.ts';
import { webhookFields, webhookHashKeys } from '../src/data/webhooks/webhook-fields.ts';
import { storeFields } from '../src/store/redis/store-keys.ts';
import { undocumentedNames } from './lua-arguments.ts';
import { type HashKeys, misnamedFields } from './lua-fields.ts';
import { withIncludes } from './lua-includes.ts';
import { unusedMembers } from './lua-members.ts';
import { foreignIncludes, luaFindings } from './lua-rules.ts';

const mayUse = createRequire(import.meta.url)('./dependencies.cjs') as Record<string, string[]>;
const root = new URL('../', import.meta.url);
const files = globSync('{src,test,hack}/**/*.lua', { cwd: root.pathname }).sort();
const tables = { ...hashFields, ...registryFields, ...webhookFields, ...storeFields };
/** Folders whose scripts have other keys than those of a shard. */
const keysOf: Record<string, HashKeys> = {
  'src/data/webhooks/': webhookHashKeys,
  'src/data/registry/': { 'KEYS[4]': 'changeEntry' },
  'src/store/': { 'KEYS[2]': 'storeChange' },
};
const keysFor = (file: string): HashKeys => Object.entries(keysOf).find(([folder]) => file.startsWith(folder))?.[1] ?? hashKeys;
const isInclude = (file: string): boolean => file.includes('/includes/');
const urls = (chosen: string[]): URL[] => chosen.map((file) => new URL(file, root));
const scripts = files.filter((file) => !isInclude(file));
const { complaints, warnings, includes } = luaFindings(urls(scripts), urls(files.filter(isInclude)), root, tables);
complaints.push(...foreignIncludes(urls(files), mayUse, root));
for (const file of files) complaints.push(...misnamedFields(urls([file]), tables, keysFor(file), root));
complaints.push(...undocumentedNames(urls(scripts), root), ...unusedMembers(urls(files), root));

if (process.argv.includes('--write') && includes.length > 0) {
  for (const { file, wanted } of includes) {
    writeFileSync(file, withIncludes(readFileSync(file, 'utf8'), file, wanted));
    console.log(`${file.pathname.slice(root.pathname.length)}: written`);
  }
  // What a new include brings may lead on; files are read once per process.
  process.exit(spawnSync(process.execPath, process.argv.slice(1), { stdio: 'inherit' }).status ?? 1);
}
for (const warning of warnings) console.warn(`warning: ${warning}`);
for (const complaint of complaints) console.error(complaint);
if (includes.length > 0) console.error('node hack/check-lua.ts --write corrects include lines');
if (complaints.length > 0) process.exitCode = 1;
else console.log(`${files.length} files of Lua, ${scripts.length} of them scripts, keep the rules`);
