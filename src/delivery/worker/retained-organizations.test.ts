import { expect, test } from '@jest/globals';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../../test/support/memory-directory.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { shardBase } from '../../data/shard/shard-keys.ts';

const suite = deliverySuite();
const retained = { retained: { atMs: 1, namespaceUid: 'n1' } };
const sealed = testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext('org_a', 'ep_a'));

const pausedTargets = () => suite.redis.client.scard(`${shardBase(suite.prefix, 0)}paused`);

test.each(['route', 'webhook endpoint'])(
  'messages to a %s of an organization that was deleted wait, and go out once it is there again',
  async (what) => {
    const { url, requests } = await suite.receiver();
    const directory = new MemoryDirectory();
    directory.putApplication(webhookApplication());
    const endpoint = webhookEndpoint({ url, secret: { sealed, prefix: 'whsec_AQEB…', version: 1, previous: [] } });
    directory.putEndpoint(endpoint);
    suite.registry.put('route', routeRecord());
    suite.registry.put('destination', destinationRecord({ url }));
    suite.registry.put('organization', organizationRecord(retained));
    suite.worker({ webhooks: { ...directory.sources(), retries: { delaysMs: [] } } });
    if (what === 'route') await suite.send();
    else await suite.acceptor.accept(newWebhookEvent('org_a', [endpoint]));
    await eventually(async () => expect(await pausedTargets()).toBe(1));
    expect(requests).toHaveLength(0);
    suite.registry.put('organization', organizationRecord());
    await eventually(async () => expect(requests).toHaveLength(1));
    await eventually(async () => expect(await pausedTargets()).toBe(0));
  },
);
