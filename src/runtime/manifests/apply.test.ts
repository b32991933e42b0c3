import { expect, test } from '@jest/globals';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import type { ApplyObject } from '../../store/store.ts';
import { systemClock } from '../system-clock.ts';
import { ManifestApplier } from './apply.ts';

const url = 'https://shop.example.com/';

test.each<[string, unknown, RegExp[]]>([
  ['one complaint', { http: { url, timeoutMs: 1e30 } }, [/spec\.http\.timeoutMs/]],
  ['one unknown field', { http: { url }, colour: 'red' }, [/spec\.colour/]],
  [
    'several complaints',
    { http: { url: 'none', timeoutMs: 1, method: 'GET' } },
    [/spec\.http\.url/, /spec\.http\.timeoutMs/, /spec\.http\.method/],
  ],
])('the failure of a manifest with %s names each once', async (_, spec, fields) => {
  const store = new MemoryStore(systemClock);
  await store.apply({ kind: 'Namespace', metadata: { name: 'default' } }, { manager: 'test' });
  const applier = new ManifestApplier(store, { protectedManager: 'standalone' });
  const manifest = { kind: 'Destination', metadata: { name: 'broken', namespace: 'default' }, spec } as ApplyObject;
  const [failure] = await applier.apply([manifest]);
  const message = failure?.message ?? '';
  for (const field of fields) expect([message, message.split(field).length - 1]).toEqual([message, 1]);
});
