import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { lintSuite } from '../../../test/support/lint-suite.ts';
import { posthornKinds } from '../../resources/kinds.ts';
import { readDocuments } from '../../runtime/manifests/parse.ts';
import { fileFindings } from './file-findings.ts';

const suite = lintSuite();
const source = 'apiVersion: posthorn.dev/v1alpha1\nkind: Source\nmetadata: {name: orders}\n';
const foreign = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n';

test.each<[string, string | Buffer, string[]]>([
  ['an empty file', '', ['error 1:1 EmptyFile']],
  ['a file of white space', '\n \n', ['error 1:1 EmptyFile']],
  ['a file of comments', '# nothing\n', ['warning 1:1 EmptyDocument']],
  ['an empty document at the end', `${source}spec: {}\n---\n`, ['warning 5:4 EmptyDocument']],
  ['an empty document between others', `---\n# nothing\n---\n${source}spec: {}\n`, ['warning 1:4 EmptyDocument']],
  ['a document that is null', `${source}spec: {}\n---\n~\n`, ['warning 6:1 EmptyDocument']],
  ['an end of a document without one', '...\n', ['warning 1:1 EmptyDocument']],
  ['directives without a document', '%YAML 1.1\n', ['warning 1:1 EmptyDocument']],
  ['a broken directive without a document', '%YAML\n', ['error 1:1 Unreadable']],
  ['a bracket that does not close', `${source}spec: {allowedMethods: [POST\n`, ['error 5:1 Unreadable']],
  ['a quote that does not close', `${source}spec: {description: "from\n`, ['error 5:1 Unreadable']],
  ['JSON that does not close', `{"apiVersion": "posthorn.dev/v1alpha1",\n"kind": "Source", "metadata": {"name"`, ['error 2:38 Unreadable']],
  [
    'two objects of JSON in a line',
    '{"apiVersion": "apps/v1", "kind": "A"} {"apiVersion": "apps/v1", "kind": "A"}\n',
    ['error 1:40 Unreadable'],
  ],
  ['a member that comes twice', `${source}spec: {}\nkind: Source\n`, ['error 5:1 Unreadable']],
  ['a last field without a value', `${source}spec:\n`, ['error 4:1 Truncated', 'error 4:1 Invalid']],
  ['a last text without a line', `${source}spec:\n  description: |\n`, ['error 5:3 Truncated']],
  ['a last item without a value', `${source}spec:\n  allowedMethods:\n  - POST\n  -\n`, ['error 7:4 Truncated', 'error 7:4 Invalid']],
  ['a last line without an end', `${source}spec:\n  description: fro`, ['warning 5:19 Truncated']],
  ['a last line without an end of an object of another API group', `${foreign}spec: {}`, ['warning 4:9 Truncated']],
  ['an unknown tag', `${source}spec:\n  description: !env NAME\n`, ['warning 5:16 UnclearYaml']],
  ['text that is not UTF-8', Buffer.from(`${source}spec: {description: "\xe4"}\n`, 'latin1'), ['error 4:22 Unreadable']],
  ['a letter that is cut off', Buffer.from(`${source}spec: {description: "€`).subarray(0, -1), ['error 4:22 Unreadable']],
])('A finding reports %s', async (_what, content, expected) => {
  const { findings } = await suite.linted({ 'a.yaml': content });
  expect(findings.map(({ severity, line, column, reason }) => `${severity} ${line}:${column} ${reason}`)).toEqual(expected);
});

test.each([
  ['a document behind a comment', `# Ours.\n---\n${source}spec: {}\n`],
  ['JSON whose line has no end', '{"apiVersion": "posthorn.dev/v1alpha1", "kind": "Source", "metadata": {"name": "orders"}, "spec": {}}'],
  ['a document with an end', `${source}spec: {description: a}\n...`],
  ['a null that is written', `${source}spec: {}\nstatus: null\n`],
  ['a last field without a value of an object of another API group', `${foreign}spec:\n`],
])('No finding reports %s', async (_what, content) => {
  expect(await suite.linted({ 'a.yaml': content })).toMatchObject({ code: 0, findings: [] });
});

test.each(['source.yaml', 'destination.yaml', 'route.yaml', 'webhook-endpoint.yaml'])(
  '%s, cut at any place within a line, has a finding',
  (sample) => {
    const text = readFileSync(new URL(`../../../config/samples/${sample}`, import.meta.url), 'utf8');
    const silent: string[] = [];
    for (let end = 0; end < text.length; end++) {
      const part = text.slice(0, end);
      if (part.endsWith('\n')) continue;
      const read = readDocuments(part, { kinds: posthornKinds, skipsForeign: true });
      if (fileFindings(part, read).length === 0) silent.push(part.slice(-60));
    }
    expect(silent).toEqual([]);
  },
);
