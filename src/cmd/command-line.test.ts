import { expect, test } from '@jest/globals';
import { parseCommandLine, UsageError, usage } from './command-line.ts';

test.each([
  [['standalone', '--manifests', 'dir', '--workers=3'], { name: 'standalone', manifestsDirectory: 'dir', workers: 3 }],
  [['standalone'], { name: 'standalone', manifestsDirectory: undefined, workers: 1 }],
  [['delivery'], { name: 'delivery' }],
  [['migrate'], { name: 'migrate' }],
  [['lint', 'a', '-'], { name: 'lint', paths: ['a', '-'], namespace: 'default', output: 'text', isPartial: false }],
  [
    ['lint', '--partial', '--output=json', '--namespace', 'n', 'a'],
    { name: 'lint', paths: ['a'], namespace: 'n', output: 'json', isPartial: true },
  ],
  [['lint', '--help'], { name: 'help', of: 'lint' }],
  [['uninstall', '--controller=c'], { name: 'uninstall', controller: 'c', deletesOrganizations: false, deletesCrds: false }],
  [
    ['uninstall', '--controller=c', '--delete-organizations'],
    { name: 'uninstall', controller: 'c', deletesOrganizations: true, deletesCrds: false },
  ],
  [
    ['uninstall', '--controller=c', '--delete-organizations', '--delete-crds'],
    { name: 'uninstall', controller: 'c', deletesOrganizations: true, deletesCrds: true },
  ],
  [['--version'], { name: 'version' }],
  [['standalone', '--help'], { name: 'help', of: 'standalone' }],
])('%j is understood', (argv, command) => {
  expect(parseCommandLine(argv)).toEqual(command);
});

test.each([
  [[]],
  [['worker']],
  [['--verbose']],
  [['api', '--port', '1']],
  [['api', 'now']],
  [['uninstall']],
  [['lint']],
  [['lint', '--output=xml', 'a']],
  [['standalone', '--workers', '0']],
  [['standalone', '--workers', 'many']],
])('%j is refused', (argv) => {
  expect(() => parseCommandLine(argv)).toThrow(UsageError);
});

test('the usage names every role', () => {
  for (const role of ['standalone', 'controller', 'api', 'delivery', 'crds']) expect(usage()).toContain(role);
});
