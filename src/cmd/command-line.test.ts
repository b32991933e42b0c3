import { expect, test } from '@jest/globals';
import { parseCommandLine, UsageError, usage } from './command-line.ts';

test.each([
  [['standalone', '--manifests', 'dir', '--workers=3'], { name: 'standalone', manifestsDirectory: 'dir', workers: 3 }],
  [['standalone'], { name: 'standalone', manifestsDirectory: undefined, workers: 1 }],
  [['delivery'], { name: 'delivery' }],
  [['migrate'], { name: 'migrate' }],
  [['uninstall', '--controller=c'], { name: 'uninstall', controller: 'c', deletesOrganizations: false }],
  [['uninstall', '--controller=c', '--delete-organizations'], { name: 'uninstall', controller: 'c', deletesOrganizations: true }],
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
  [['standalone', '--workers', '0']],
  [['standalone', '--workers', 'many']],
])('%j is refused', (argv) => {
  expect(() => parseCommandLine(argv)).toThrow(UsageError);
});

test('the usage names every role', () => {
  for (const role of ['standalone', 'controller', 'api', 'delivery', 'crds']) expect(usage()).toContain(role);
});
