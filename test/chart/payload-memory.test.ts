import { describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { chart, helm, manifests, template } from '../support/helm.ts';

describe('memory for payloads above 1 MiB', () => {
  const bytes = (mebibytes: number): string => `ingest.maxPayloadBytes=${mebibytes * 1_048_576}`;
  type Resources = { requests?: { memory?: string }; limits?: { memory?: string } };

  /** Memory of ingest, and of the workers of the default pool. */
  async function memory(...sets: string[]): Promise<Record<'ingest' | 'delivery', [request: unknown, limit: unknown]>> {
    const objects = manifests(await template(...sets.flatMap((set) => ['--set', set])));
    const ingest = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'posthorn-ingest');
    const bootstrap = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'posthorn-bootstrap');
    const files = bootstrap?.['data'] as Record<string, string> | undefined;
    const pool = parseAllDocuments(files?.['delivery-pool.yaml'] ?? '')[0]?.toJS();
    const spec = ingest?.['spec'] as { template: { spec: { containers: { resources: Resources }[] } } } | undefined;
    const of = ({ requests, limits }: Resources = {}): [unknown, unknown] => [requests?.memory, limits?.memory];
    return { ingest: of(spec?.template.spec.containers[0]?.resources), delivery: of(pool?.spec.resources) };
  }

  test.each<[string, string[], [string | undefined, string | undefined], [string, string]]>([
    ['is as always where there are none', [bytes(1)], ['128Mi', '512Mi'], ['128Mi', '512Mi']],
    ['grows with the largest one', [bytes(2)], ['136Mi', '1296Mi'], ['136Mi', '1296Mi']],
    ['grows up to 1 GiB', [bytes(32)], ['256Mi', '1536Mi'], ['256Mi', '1536Mi']],
    [
      'is what a user says',
      [bytes(32), 'ingest.resources.limits.memory=3Gi', 'ingest.resources.requests.memory=1Gi'],
      ['1Gi', '3Gi'],
      ['256Mi', '1536Mi'],
    ],
    ['has no limit where a user wants none', [bytes(32), 'ingest.resources.limits=null'], ['256Mi', undefined], ['256Mi', '1536Mi']],
  ])('%s', async (_what, sets, ingest, delivery) => {
    expect(await memory(...sets)).toEqual({ ingest, delivery });
  });

  test.each<[string, string[], string | null]>([
    ['too little of ingest', [bytes(32), 'ingest.resources.limits.memory=1Gi'], 'ingest.resources.limits.memory is 1Gi'],
    ['too little of the workers', [bytes(8), 'delivery.resources.limits.memory=700Mi'], 'delivery.resources.limits.memory is 700Mi'],
    ['enough', [bytes(32), 'ingest.resources.limits.memory=2Gi'], null],
    ['the default', [bytes(32)], null],
    ['little, and no large payloads', ['ingest.resources.limits.memory=300Mi'], null],
  ])('the notes of a release warn of %s', async (_what, sets, warning) => {
    const text = await helm(
      'install',
      'posthorn',
      chart,
      '--dry-run=client',
      '--namespace',
      'posthorn-system',
      ...sets.flatMap((set) => ['--set', set]),
    );
    const notes = text.slice(text.indexOf('NOTES:'));
    if (warning === null) expect(notes).not.toContain('payloads above 1 MiB');
    else expect(notes).toContain(warning);
  });

  test('ingest and workers have the largest payload', async () => {
    const objects = manifests(await template('--set', bytes(32)));
    const ofWorkers = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'posthorn-delivery');
    expect(ofWorkers?.['data']).toMatchObject({ POSTHORN_MAX_PAYLOAD_BYTES: '33554432' });
    const ingest = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'posthorn-ingest');
    expect(JSON.stringify(ingest)).toContain('{"name":"POSTHORN_MAX_PAYLOAD_BYTES","value":"33554432"}');
  });
});
