import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { type ConfigurationKind, configurationKinds } from '../../src/resources/kinds.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { startProgram } from '../support/program.ts';
import { openStandaloneStore } from '../support/standalone-store.ts';
import type { Manifest, World } from './world.ts';

const kinds = z.enum(configurationKinds as [ConfigurationKind, ...ConfigurationKind[]]);

/** `posthorn standalone` with a manifests directory and a Redis of its own. */
export async function startStandaloneWorld(): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
  const manifests = mkdtempSync(join(directory, 'manifests-'));
  const authority = createCertificateAuthority();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const program = startProgram(['standalone', '--manifests', manifests], {
    POSTHORN_PORT: String(port),
    POSTHORN_DATA_DIR: join(directory, 'data'),
    POSTHORN_EGRESS_CA_FILE: authority.file,
  });
  const fileOf = ({ kind, metadata }: Manifest): string =>
    join(manifests, `${kind}-${metadata.namespace ?? ''}-${metadata.name}.json`.toLowerCase());
  await program.waitForOutput(/^posthorn ready (\S+) key (\S+)$/m, 60_000);
  const { store, close } = await openStandaloneStore(join(directory, 'data'));
  return {
    url,
    ingestUrl: url,
    receiverAddress: '127.0.0.1',
    authority,
    apply: async (objects) => {
      for (const object of objects) writeFileSync(fileOf(object), JSON.stringify(object, null, 2));
    },
    remove: async (manifest) => unlinkSync(fileOf(manifest)),
    waitUntilReady: async ({ kind, metadata }) => {
      await eventually(`${kind} ${metadata.name} to be ready`, 60_000, async () => {
        const object = await store.get(kinds.parse(kind), metadata);
        const ready = object.status?.conditions?.find(({ type }) => type === 'Ready');
        return ready?.status === 'True' && ready.observedGeneration === object.metadata.generation;
      });
    },
    stop: async () => {
      close();
      await program.stop();
      authority.remove();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
