import { expect, test } from '@jest/globals';
import { listFilters } from '../web/app/list-filters.ts';
import { ConfigError, readConfig } from './config.ts';
import { viewScreens } from './console-views.ts';

const failed = { name: 'Failed', screen: 'deliveries', search: { status: 'failed,dlq', destinationId: 'billing' } };

function mistakesOf(environment: Record<string, string>, file: string | null = null): readonly string[] {
  try {
    readConfig('standalone', environment, () => file);
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes;
    throw error;
  }
  return [];
}

test('the console has no views of the operator unless POSTHORN_CONSOLE_VIEWS gives some', () => {
  expect(readConfig('standalone', {}).consoleViews).toEqual([]);
  expect(readConfig('standalone', { POSTHORN_CONSOLE_VIEWS: JSON.stringify([failed]) }).consoleViews).toEqual([failed]);
});

test('the views of the operator can be in a file, and the variable takes precedence over it', () => {
  const file = { POSTHORN_CONSOLE_VIEWS_FILE: '/etc/views.json' };
  expect(readConfig('standalone', file, () => JSON.stringify([failed])).consoleViews).toEqual([failed]);
  expect(readConfig('standalone', { ...file, POSTHORN_CONSOLE_VIEWS: '[]' }, () => JSON.stringify([failed])).consoleViews).toEqual([]);
  expect(mistakesOf(file)).toEqual(['POSTHORN_CONSOLE_VIEWS_FILE: /etc/views.json cannot be read']);
  expect(mistakesOf(file, '{')).toEqual([expect.stringMatching(/^POSTHORN_CONSOLE_VIEWS: must be JSON: /)]);
});

test.each<[title: string, views: unknown, mistake: RegExp]>([
  ['that are no list', failed, /^POSTHORN_CONSOLE_VIEWS: Invalid input: expected array/],
  ['of a screen that there is not', [{ ...failed, screen: 'targets' }], /^POSTHORN_CONSOLE_VIEWS\.0\.screen: Invalid option/],
  ['with a filter that the screen does not have', [{ ...failed, screen: 'events' }], /\.0\.search\.destinationId: is no filter of events/],
  ['with a filter that is no text', [{ ...failed, search: { responseStatus: 503 } }], /\.0\.search\.responseStatus: Invalid input/],
  ['without a name', [{ ...failed, name: ' ' }], /\.0\.name: /],
  ['whose name has a line break', [{ ...failed, name: 'a\nb' }], /\.0\.name: must have no control characters/],
  ['with a member that says nothing', [{ ...failed, icon: 'fail' }], /\.0: Unrecognized key: "icon"/],
  ['of which two have the same name on a screen', [failed, failed], /\.1\.name: is that of another view of deliveries/],
  [
    'of which there are more than 50',
    Array.from({ length: 51 }, (_, n) => ({ ...failed, name: `${n}` })),
    /POSTHORN_CONSOLE_VIEWS: Too big/,
  ],
])('the configuration refuses views %s', (_title, views, mistake) => {
  expect(mistakesOf({ POSTHORN_CONSOLE_VIEWS: JSON.stringify(views) })).toEqual([expect.stringMatching(mistake)]);
});

test('the configuration checks the filters that the lists of the console have', () => {
  const sorted = (screens: Record<string, readonly string[]>) =>
    Object.fromEntries(Object.entries(screens).map(([screen, names]) => [screen, [...names].sort()]));
  expect(sorted(viewScreens)).toEqual(sorted(listFilters));
});
