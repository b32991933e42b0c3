import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { describeInCluster } from '../support/in-cluster.ts';
import { portForward } from '../support/port-forward.ts';
import { startProgram } from '../support/program.ts';
import { replacingWorkers } from './cluster-world.ts';
import { PodOps } from './installation-state.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import { ingest, RestClient } from './rest.ts';
import { type Backup, certificateOf, SecondInstallation, second } from './second-installation.ts';
import { SteadyLoad } from './steady-load.ts';
import { patienceMs, system } from './system-commands.ts';

const perSecond = 200;
/** More than any of the load. */
const waitingNumber = 10_000_000;
const token = (name: string): string => `a-long-token-${name}`;

describeInCluster('a second installation in the cluster', () => {
  const ofFirst = new SteadyLoad();
  const load = new SteadyLoad(second);
  const tokens = new Set([`Bearer ${token('one')}`]);
  let installation: SecondInstallation;
  let ops: PodOps;
  let next: CertificateAuthority;
  /** Processes that are to run for as long as the suite does. */
  let pods: string[];
  let backup: Backup;
  /** Id of the event that waits while the backup is made. */
  let waiting: string;

  const workersOfSecondAreReplaced = (change: () => Promise<unknown>): Promise<void> => replacingWorkers(change, second.namespace);
  /** Each object of the organization of the first installation, with its generation, Secrets with the version of their last write. */
  const versionsOfFirst = async (): Promise<string[]> => {
    const of = (kinds: string, version: string): Promise<string> =>
      kubectl(['-n', ofFirst.namespace, 'get', kinds, '-o', `jsonpath={range .items[*]}{.kind} {.metadata.uid} {${version}}{"\\n"}{end}`]);
    const organization = ['get', `organization/${ofFirst.namespace}`, '-o', 'jsonpath={.metadata.uid} {.metadata.generation}'];
    // Each change of a circuit is a write of the status.
    return await Promise.all([
      of('source,destination,route', '.metadata.generation'),
      of('secrets', '.metadata.resourceVersion'),
      kubectl(organization),
    ]);
  };
  const through = async <T>(namespace: string, service: string, use: (url: string) => Promise<T>): Promise<T> => {
    const forward = await portForward(namespace, `service/${service}`, 80);
    try {
      return await use(`http://127.0.0.1:${forward.port}`);
    } finally {
      await forward.stop();
    }
  };
  const statusOfKey = (key: string): Promise<number> =>
    through(second.namespace, 'posthorn-two-api', async (url) => (await new RestClient(url, key).send('GET', '/api/sources')).status);
  const statusOfEvent = (namespace: string, service: string, organization: string): Promise<number> =>
    through(
      namespace,
      service,
      async (url) => (await fetch(`${url}/ingest/${organization}/absent`, { method: 'POST', body: '{}' })).status,
    );
  /** Waits until a condition of an object of the organization of the load has the reason. */
  const reasonBecomes = (object: string, type: string, reason: string): Promise<void> =>
    eventually(async () => {
      const path = `jsonpath={.status.conditions[?(@.type=="${type}")].reason}`;
      expect(await kubectl(['-n', load.namespace, 'get', object, '-o', path])).toBe(reason);
    }, patienceMs);
  /** Deliveries continue, and every process. Whether all has arrived is checked last: a busy machine is behind by then. */
  const goesOn = async (): Promise<void> => {
    await load.goesOn(perSecond);
    expect(load.unexpected).toEqual([]);
    expect(await installation.pods()).toEqual(pods);
  };

  beforeAll(async () => {
    next = createCertificateAuthority();
    installation = await SecondInstallation.install();
    ops = await PodOps.open(second.namespace);
    pods = await installation.pods();
    const auth = { type: 'bearer', tokenSecretRef: { name: 'token', key: 'value' } };
    await Promise.all([
      ofFirst.start({ perSecond: 5, entrance: 'ingest' }),
      load.start({
        perSecond,
        entrance: 'ingest',
        authority: installation.authority,
        secrets: { token: token('one') },
        http: { auth, useStaticIp: true },
        expected: ({ headers }) => tokens.has(headers.authorization ?? ''),
      }),
    ]);
    load.answerMs = 10;
  }, 600_000);
  afterAll(async () => {
    const removed = await Promise.allSettled([load.remove(), ofFirst.remove()]);
    // What runs on this machine ends also where the cluster is too slow.
    removed.push(...(await Promise.allSettled([ops?.close(), installation?.remove()])));
    next?.remove();
    for (const result of removed) if (result.status === 'rejected') throw result.reason;
  }, 600_000);

  test('delivers its own events beside the first one, and neither takes events of the other', async () => {
    await Promise.all([load.goesOn(), ofFirst.goesOn()]);
    await kubectlApply([load.shop.apiKeyManifest, ofFirst.shop.apiKeyManifest]);
    // Sealed by the first installation, whose keys the second one does not have.
    await through(system, 'posthorn-api', async (url) => {
      const sealed = { name: 'Sealed', url: 'https://shop.example/', authType: 'bearer', authConfig: { token: token('of-the-first') } };
      await eventually(async () =>
        expect((await new RestClient(url, ofFirst.shop.apiKey).send('POST', '/api/destinations', sealed)).status).toBe(201),
      );
    });
    await kubectl(['-n', ofFirst.namespace, 'wait', '--for=condition=Ready', 'destination/sealed', '--timeout=120s']);
    expect(await statusOfEvent(system, 'posthorn-ingest', load.namespace)).toBe(404);
    expect(await statusOfEvent(second.namespace, 'posthorn-two-ingest', ofFirst.namespace)).toBe(404);
  }, 300_000);

  test('delivers without interruption while user and password of Redis change', async () => {
    await installation.setUser('>two');
    const url = installation.redisUrl('two');
    await installation.rotates(() => installation.putSecret('redis', { POSTHORN_REDIS_URL: url }), 'redis/POSTHORN_REDIS_URL', url);
    await installation.setUser('<one');
    await installation.cutConnections();
    await goesOn();
  }, 600_000);

  test('delivers without interruption while the authority and the certificates of Redis and of its clients change', async () => {
    const both = installation.authority.text + next.text;
    await installation.rotates(() => installation.putSecret('redis-ca', { 'ca.crt': both }), 'redis-ca/ca.crt', next.text.trim());
    installation.entrance.use({ shown: next, trusted: [installation.authority, next] });
    const certificate = certificateOf(next);
    await installation.rotates(
      async () => {
        await installation.putSecret('redis-certificate', certificate);
        await installation.putSecret('redis-ca', { 'ca.crt': next.text });
      },
      'redis-certificate/tls.crt',
      certificate['tls.crt']?.trim() ?? '',
    );
    installation.entrance.use({ shown: next, trusted: [next] });
    await installation.cutConnections();
    await goesOn();
  }, 600_000);

  test('delivers without interruption while the admin key changes, and the earlier one ends', async () => {
    const earlier = await installation.secretValue('posthorn-two-api-key', 'api-key');
    const key = `ph_${randomBytes(24).toString('hex')}`;
    expect(await statusOfKey(earlier)).toBe(200);
    await installation.putSecret('posthorn-two-api-key', { 'api-key': key });
    await eventually(async () => {
      await installation.refresh();
      expect([await statusOfKey(key), await statusOfKey(earlier)]).toEqual([200, 401]);
    }, patienceMs);
    await goesOn();
  }, 600_000);

  test('delivers without interruption while the encryption keys change, and reseals nothing of the first installation', async () => {
    const encryptionKeys = await installation.secretValue('posthorn-two-encryption', 'POSTHORN_ENCRYPTION_KEYS');
    const versions = await versionsOfFirst();
    const another = `k2:${randomBytes(32).toString('base64')}`;
    const put = async (keys: string): Promise<void> => {
      const values = { POSTHORN_ENCRYPTION_KEYS: keys };
      await installation.rotates(
        () => installation.putSecret('posthorn-two-encryption', values),
        'encryption/POSTHORN_ENCRYPTION_KEYS',
        keys,
      );
      const ids = keys.split(',').map((key, i) => `${key.split(':')[0]} ${i === 0 ? 'seal' : 'open'}`);
      await eventually(async () => expect(await keysOfPods()).toEqual([ids.sort().join()]), patienceMs);
    };
    /** What the processes have, each once. */
    const keysOfPods = async (): Promise<string[]> => {
      const byPod = Map.groupBy(
        (await ops.scrapeAll()).filter(({ name, value }) => name === 'posthorn_encryption_key_info' && value === 1),
        ({ labels }) => /pod="([^"]+)"/.exec(labels)?.[1],
      );
      const label = (labels: string, name: string): string => new RegExp(`\\b${name}="(\\w+)"`).exec(labels)?.[1] ?? '';
      const keys = [...byPod.values()].map((found) =>
        found
          .map(({ labels }) => `${label(labels, 'id')} ${label(labels, 'use')}`)
          .sort()
          .join(),
      );
      return [...new Set(keys)];
    };
    await put(`${encryptionKeys},${another}`);
    await put(`${another},${encryptionKeys}`);
    const rekey = startProgram(['rekey'], {
      KUBECONFIG: process.env['KUBECONFIG'] ?? '',
      POSTHORN_INSTALLATION: second.installation,
      POSTHORN_REDIS_URL: installation.redis.url,
      POSTHORN_ENCRYPTION_KEYS: `${another},${encryptionKeys}`,
    });
    expect([await rekey.ended, rekey.output()]).toEqual([0, expect.stringMatching(/ [1-9]\d* records, .*; 0 did not open$/m)]);
    await put(another);
    await goesOn();
    expect(await versionsOfFirst()).toEqual(versions);
  }, 900_000);

  test('delivers without interruption while the password of the SMTP server changes, and sends e-mails with the new one', async () => {
    await kubectlApply([
      {
        apiVersion: 'posthorn.dev/v1alpha1',
        kind: 'NotificationChannel',
        metadata: { name: 'mail', namespace: load.namespace },
        spec: { type: 'email', email: { addresses: ['ops@example.com'] } },
      },
    ]);
    await kubectl(['-n', load.namespace, 'wait', '--for=condition=Ready', 'notificationchannel/mail', '--timeout=120s']);
    const sendsTest = (): Promise<void> =>
      through(second.namespace, 'posthorn-two-api', async (url) => {
        const { status, body } = await new RestClient(url, load.shop.apiKey).send('POST', '/api/notification-channels/mail/test');
        expect([status, body]).toMatchObject([200, { success: true }]);
      });
    await sendsTest();
    installation.smtp.passwords.add('two');
    await workersOfSecondAreReplaced(() => installation.putSecret('smtp', { POSTHORN_SMTP_PASSWORD: 'two' }));
    installation.smtp.passwords.delete('one');
    await sendsTest();
    expect(installation.smtp.mails).toHaveLength(2);
    await goesOn();
  }, 600_000);

  test('delivers without interruption while the password of the proxy changes', async () => {
    const url = installation.proxy.url.replace('s3%3Acret', 'another');
    installation.proxy.passwords.add('another');
    await workersOfSecondAreReplaced(() => installation.putSecret('proxy', { POSTHORN_EGRESS_PROXY_URL: url }));
    installation.proxy.passwords.delete('s3:cret');
    await goesOn();
  }, 600_000);

  test('delivers without interruption while the token of the destination and the authority of the receiver change', async () => {
    tokens.add(`Bearer ${token('two')}`);
    await load.putSecret('token', token('two'));
    await eventually('the new token to arrive', patienceMs, () => load.newestRequest?.headers.authorization === `Bearer ${token('two')}`);
    const trusts = (...authorities: CertificateAuthority[]): Promise<void> => {
      const text = authorities.map((each) => each.text).join('');
      return workersOfSecondAreReplaced(() => installation.upgrade('--set-json', `egress.caCertificates=${JSON.stringify(text)}`));
    };
    await trusts(installation.authority, next);
    load.showCertificate(next);
    await trusts(next);
    await goesOn();
  }, 600_000);

  test('delivered every event that it has accepted', async () => {
    const { accepted } = await load.end(600_000);
    expect(accepted.length).toBeGreaterThan(perSecond);
    expect(load.unexpected).toEqual([]);
  }, 900_000);

  test('is saved while an event waits', async () => {
    await kubectl(['-n', load.namespace, 'patch', 'destination/load', '--type=merge', '-p', '{"spec":{"enabled":false}}']);
    await reasonBecomes('destination/load', 'Ready', 'Disabled');
    await through(second.namespace, 'posthorn-two-api', async (url) => {
      const sealed = { name: 'Sealed', url: 'https://shop.example/', authType: 'bearer', authConfig: { token: token('sealed') } };
      expect((await new RestClient(url, load.shop.apiKey).send('POST', '/api/destinations', sealed)).status).toBe(201);
    });
    await reasonBecomes('destination/sealed', 'ResolvedRefs', 'ResolvedRefs');
    waiting = await through(second.namespace, 'posthorn-two-ingest', async (url) => {
      const event = { headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify({ number: waitingNumber })) };
      const { status, body } = await ingest(url, `${load.namespace}/load`, event);
      expect(status).toBe(200);
      return body.eventId ?? '';
    });
    backup = await installation.save([load.namespace, second.installation]);
    expect(load.newest()).toBeLessThan(waitingNumber);
  }, 300_000);

  test('is uninstalled, and nothing of the first installation changes', async () => {
    const versions = await versionsOfFirst();
    const repeatedBefore = ofFirst.repeated.length;
    await installation.uninstall();
    expect(await kubectl(['get', `organization/${load.namespace}`, '-o', 'jsonpath={.metadata.finalizers}'])).toBe('');
    await ofFirst.goesOn();
    const { refused } = await ofFirst.end();
    expect([refused, ofFirst.repeated.slice(repeatedBefore)]).toEqual([[], []]);
    expect(await versionsOfFirst()).toEqual(versions);
    expect(await kubectl(['get', `organization/${ofFirst.namespace}`, '-o', 'jsonpath={.metadata.finalizers}'])).toContain(
      'posthorn.dev/purge',
    );
  }, 300_000);

  test('is restored from its backup once nothing of it is left, and delivers the event that waited', async () => {
    const namespaces = [second.namespace, second.installation, load.namespace];
    await kubectl(['delete', 'organization', second.installation, load.namespace, '--timeout=60s']);
    await kubectl(['delete', 'namespace', ...namespaces, '--timeout=120s']);
    await installation.restore(backup);
    await kubectl(['-n', load.namespace, 'wait', '--for=condition=Ready', 'route/load', '--timeout=120s']);
    await through(second.namespace, 'posthorn-two-api', async (url) => {
      const { status, body } = await new RestClient(url, load.shop.apiKey).send('GET', `/api/events/${waiting}`);
      expect([status, body]).toMatchObject([200, { id: waiting }]);
    });
    await reasonBecomes('destination/sealed', 'ResolvedRefs', 'SecretNotShared');
    const own = JSON.stringify({ spec: { http: { auth: { tokenSecretRef: { name: 'token', key: 'value' } } } } });
    await kubectl(['-n', load.namespace, 'patch', 'destination/sealed', '--type=merge', '-p', own]);
    await reasonBecomes('destination/sealed', 'ResolvedRefs', 'ResolvedRefs');
    await kubectl(['-n', load.namespace, 'patch', 'destination/load', '--type=merge', '-p', '{"spec":{"enabled":true}}']);
    await eventually(() => expect(load.newest()).toBe(waitingNumber), patienceMs);
    expect(load.unexpected).toEqual([]);
  }, 600_000);
});
