// Writes the lists of resources in config/rbac and config/migrate that are under a comment "# kinds: NAME", from the definitions of the kinds. With
// --check it only lists which files differ, and fails if any does. The chart's rules are made of these files by hack/gen-helm-chart.ts.
import { readFileSync, writeFileSync } from 'node:fs';
import { group } from '../src/resources/definition.ts';
import { configurationKinds, definitionOf, type PosthornKind, posthornKinds, servedKinds } from '../src/resources/kinds.ts';

const files = [
  'config/rbac/api.yaml',
  'config/rbac/controller.yaml',
  'config/rbac/organization-controller.yaml',
  'config/rbac/users/cluster-roles.yaml',
  'config/migrate/migrate.yaml',
];
const width = 140;

const plurals = (kinds: readonly PosthornKind[]): string[] => kinds.map((kind) => definitionOf(kind).plural);
const withSharedStatus = configurationKinds.filter((kind) => definitionOf(kind).hasSharedStatus === true);
const status = (plural: string): string => `${plural}/status`;
const all = plurals(posthornKinds).sort();
const lists: Readonly<Record<string, readonly string[]>> = {
  all,
  'all definitions': all.map((plural) => `${plural}.${group}`),
  configuration: plurals(configurationKinds),
  'configuration status': plurals(configurationKinds).map(status),
  'in namespaces': plurals(configurationKinds.filter((kind) => kind !== 'Organization')),
  served: plurals(servedKinds),
  'in the webhook store': plurals(configurationKinds.filter((kind) => definitionOf(kind).webhookKind !== undefined)),
  'shared status': plurals(withSharedStatus).map(status),
  'with shared status': plurals(withSharedStatus),
  'of developers': plurals(configurationKinds.filter((kind) => definitionOf(kind).isForAdmins !== true)),
};

const root = new URL('../', import.meta.url).pathname;
const marked = /^( *)# kinds: (.+)\n( *(?:resources|resourceNames):)\s+(&\w+ )?\[[^\]]*\]/gm;
let changed = 0;
for (const file of files) {
  const text = readFileSync(root + file, 'utf8');
  if (text.match(/# kinds: /g)?.length !== text.match(marked)?.length)
    throw new Error(`${file}: a comment "# kinds: NAME" stands above no list`);
  const wanted = text.replace(marked, (_, indent: string, name: string, key: string, anchor = '') => {
    const list = lists[name];
    if (list === undefined) throw new Error(`${file}: there is no list of kinds "${name}"`);
    // As the formatter has it: behind the key, below it, or one to a line.
    const flow = `${anchor}[${list.join(', ')}]`;
    const rows = `${anchor}[\n${list.map((each) => `${indent}    ${each},\n`).join('')}${indent}  ]`;
    const below = `\n${indent}  ${indent.length + 2 + flow.length <= width ? flow : rows}`;
    return `${indent}# kinds: ${name}\n${key}${key.length + 1 + flow.length <= width ? ` ${flow}` : below}`;
  });
  if (wanted === text) continue;
  changed++;
  if (process.argv.includes('--check')) {
    console.error(`${file} is out of date: run node hack/gen-access.ts`);
    process.exitCode = 1;
  } else {
    writeFileSync(root + file, wanted);
  }
}
if (process.exitCode !== 1) console.log(`lists of kinds in config: ${changed} files written, ${files.length - changed} as they were`);
