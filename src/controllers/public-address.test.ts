import { expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { PosthornKind } from '../resources/kinds.ts';
import type { ApplyObject } from '../store/store.ts';

const suite = controllerSuite();
const meta = { namespace: 'acme', name: 'one' };
const url = 'https://shop.example/hooks';
const apply = (object: ApplyObject<PosthornKind | 'Secret'>) => suite.store.apply(object, { manager: 'test', force: true });

const kinds = {
  Destination: (payloadForm: string) => apply({ kind: 'Destination', metadata: meta, spec: { http: { url, payloadForm } } }),
  WebhookEndpoint: async (payloadForm: string) => {
    const value = Buffer.from(`whsec_${Buffer.alloc(32, 7).toString('base64')}`).toString('base64');
    await apply({ kind: 'Secret', metadata: { namespace: 'acme', name: 'signing' }, data: { value } });
    await apply({ kind: 'WebhookApplication', metadata: { namespace: 'acme', name: 'customer' }, spec: {} });
    const spec = { applicationRef: { name: 'customer' }, url, signingSecretRef: { name: 'signing', key: 'value' }, payloadForm };
    await apply({ kind: 'WebhookEndpoint', metadata: meta, spec });
  },
};

test.each(['Destination', 'WebhookEndpoint'] as const)(
  'a %s of the form thin is accepted only where the installation has a public address for its links',
  async (kind) => {
    const ready = async (expected: object) =>
      await eventually(async () => {
        const { metadata, status } = await suite.store.get(kind, meta);
        expect(status?.observedGeneration).toBe(metadata.generation);
        expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', ...expected }));
      });
    suite.start({ hasPublicUrl: false });
    await apply({ kind: 'Namespace' as PosthornKind, metadata: { name: 'acme' } } as ApplyObject<PosthornKind>);
    await apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } });
    await kinds[kind]('thin');
    await ready({ status: 'False', reason: 'NoPublicUrl', message: expect.stringContaining('POSTHORN_PUBLIC_URL') });
    await kinds[kind]('full');
    await ready({ status: 'True' });
    await kinds[kind]('thin');
    await ready({ status: 'False', reason: 'NoPublicUrl' });
  },
);
