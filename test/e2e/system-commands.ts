import { expect } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { deployedChart, helm } from '../support/helm.ts';
import { kubectl } from './kubectl.ts';

export const system = 'posthorn-system';
/** A machine of CI may be several times slower than the one of a developer. */
export const patienceMs = 180_000;
/** For kubectl. */
export const patience = `--timeout=${patienceMs / 1000}s`;

export const inSystem = (...args: string[]) => kubectl(['-n', system, ...args]);
export const redisCli = (...args: string[]) => inSystem('exec', 'statefulset/posthorn-redis', '--', 'redis-cli', ...args);
export const restart = async (...names: string[]): Promise<void> => {
  for (const name of names) await inSystem('rollout', 'restart', `deployment/${name}`);
};
export const rolledOut = async (...names: string[]): Promise<void> => {
  for (const name of names) await inSystem('rollout', 'status', `deployment/${name}`, patience);
};
export const areReady = async (component: string): Promise<string[]> =>
  (
    await inSystem(
      'get',
      'pods',
      '-l',
      `app.kubernetes.io/component=${component}`,
      '-o',
      'jsonpath={.items[*].status.containerStatuses[0].ready}',
    )
  ).split(' ');
export const noneIsReady = (component: string): Promise<void> =>
  eventually(async () => expect(new Set(await areReady(component))).toEqual(new Set(['false'])), patienceMs);
export const upgrade = (...args: string[]): Promise<string> =>
  helm('upgrade', 'posthorn', deployedChart(), '--namespace', system, '--reset-then-reuse-values', ...args);
export const upgradeFails = async (...args: string[]): Promise<void> =>
  expect(upgrade('--wait', '--timeout', '6s', ...args)).rejects.toThrow();
export const secretValue = async (name: string, key: string): Promise<string> =>
  Buffer.from(await inSystem('get', 'secret', name, '-o', `jsonpath={.data.${key}}`), 'base64').toString();
export const putSecret = (name: string, key: string, value: string) =>
  inSystem('patch', 'secret', name, '--type=merge', '-p', JSON.stringify({ stringData: { [key]: value } }));
export const releaseRevision = async (): Promise<string> =>
  String(JSON.parse(await helm('status', 'posthorn', '--namespace', system, '--output', 'json')).version);
