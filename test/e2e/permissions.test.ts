import { randomBytes } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { z } from 'zod';
import { AuditLog } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { manifests } from '../support/helm.ts';
import { describeInCluster } from '../support/in-cluster.ts';
import { type PortForward, portForward } from '../support/port-forward.ts';
import { scaledObjects } from '../support/scaled-objects.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import { ingest, RestClient } from './rest.ts';

const system = 'posthorn-system';
const auditLog = process.env['POSTHORN_E2E_AUDIT_LOG'];
const root = new URL('../../', import.meta.url).pathname;

const withSpec = z.looseObject({ metadata: z.looseObject({ uid: z.string() }), spec: z.unknown() });
const withCircuit = z.array(z.looseObject({ status: z.looseObject({ id: z.string(), circuit: z.unknown() }).partial().optional() }));

describeInCluster('workers and ingest', () => {
  test.each([
    ['delivery', 'posthorn-delivery-default'],
    ['ingest', 'posthorn-ingest'],
  ])('have no token of Kubernetes: %s', async (component, deployment) => {
    const inPod = ['-n', system, 'exec', `deployment/${deployment}`, '--'];
    const look = "process.stdout.write(String(require('node:fs').existsSync('/var/run/secrets/kubernetes.io')))";
    expect(await kubectl([...inPod, 'node', '--input-type=commonjs', '--eval', look])).toBe('false');
    const pods = ['-n', system, 'get', 'pods', '--selector', `app.kubernetes.io/component=${component}`, '-o'];
    expect(await kubectl([...pods, 'jsonpath={.items[*].spec.automountServiceAccountToken}'])).toMatch(/^false( false)*$/);
  });

  test('have ServiceAccounts that may do nothing in the cluster', async () => {
    const wanted = [
      { resource: 'secrets', verb: 'get', namespace: system },
      { resource: 'secrets', verb: 'list' },
      { resource: 'pods', verb: 'create', namespace: system },
      { resource: 'serviceaccounts', subresource: 'token', verb: 'create', namespace: system },
      { group: 'posthorn.dev', resource: 'sources', verb: 'list' },
    ];
    for (const account of ['posthorn-ingest', 'posthorn-delivery-default']) {
      for (const resourceAttributes of wanted) {
        const spec = { user: `system:serviceaccount:${system}:${account}`, groups: ['system:serviceaccounts'], resourceAttributes };
        const review = JSON.stringify({ apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec });
        const { status } = JSON.parse(await kubectl(['create', '-f', '-', '-o', 'json'], review));
        expect([account, resourceAttributes, status.allowed]).toEqual([account, resourceAttributes, false]);
      }
    }
  });
});

describeInCluster('the permissions of the chart', () => {
  const tenant = `tenant-${randomBytes(3).toString('hex')}`;
  const name = `Permissions ${tenant}`;
  const inTenant = (...args: string[]) => kubectl(['-n', tenant, ...args]);
  const inSystem = (...args: string[]) => kubectl(['-n', system, ...args]);
  const inDefault = (...args: string[]) => kubectl(['-n', 'default', ...args]);
  const object = (kind: string, objectName: string, spec: object, namespace = tenant) => ({
    apiVersion: 'posthorn.dev/v1alpha1',
    kind,
    metadata: { name: objectName, namespace },
    spec,
  });
  const applyOrganization = (settings: object) =>
    kubectlApply([
      {
        apiVersion: 'posthorn.dev/v1alpha1',
        kind: 'Organization',
        metadata: { name: tenant },
        spec: { namespace: tenant, deletionPolicy: 'Delete', ...settings },
      },
    ]);
  /** Whose workers write archives as soon as those of config/cluster-dev. */
  const pool = (spec: object) => {
    const podTemplate = { env: [{ name: 'POSTHORN_ARCHIVE_BATCH_SECONDS', value: '1' }] };
    return kubectlApply([object('DeliveryPool', 'permissions', { podTemplate, ...spec }, system)]);
  };
  let forward: PortForward;
  let senders: PortForward;
  let rest: RestClient;
  const restWith = (key: string) => new RestClient(`http://127.0.0.1:${forward.port}`, key);

  /** It is written, or not, after a second, and the controller checks twice a minute. */
  const beginArchiveToNowhere = async () => {
    const key = { name: 'keep', key: 'key' };
    const r2 = { bucket: 'history', endpoint: 'https://nobody.invalid', accessKeyId: 'nobody', secretAccessKeySecretRef: key };
    const filter = { conditions: [{ field: 'payload.id', operator: 'equals', value: 'another' }] };
    await kubectlApply([
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keep', namespace: tenant }, stringData: { key: 'nobody' } },
      object('Destination', 'keep', { type: 'r2', r2 }),
      object('Source', 'kept', { provider: 'generic' }),
      object('Destination', 'kept', { type: 'http', http: { url: 'https://nobody.invalid/hooks' } }),
      object('Route', 'kept', { sourceRef: { name: 'kept' }, destinationRefs: [{ name: 'kept' }], filter }),
    ]);
    await inTenant('wait', '--for=condition=Ready', 'destination/keep', 'route/kept', '--timeout=120s');
    await applyOrganization({ limits: { objectsPerKind: 100 }, archive: { destinationRef: { name: 'keep' } } });
    // What a filter holds back has ended.
    const event = { headers: { 'content-type': 'application/json' }, body: Buffer.from('{"id":"one"}') };
    await eventually(async () => expect((await ingest(`http://127.0.0.1:${senders.port}`, `${tenant}/kept`, event)).status).toBe(200));
  };

  beforeAll(async () => {
    // The controller checks once a minute whether there is KEDA.
    await kubectlApply([scaledObjects]);
    const key = await inSystem('get', 'secret', 'posthorn-api-key', '-o', 'jsonpath={.data.api-key}');
    forward = await portForward(system, 'service/posthorn-api', 80);
    senders = await portForward(system, 'service/posthorn-ingest', 80);
    rest = restWith(Buffer.from(key, 'base64').toString('utf8'));
    await applyOrganization({ limits: { objectsPerKind: 100 } });
    await kubectl(['wait', '--for=condition=Ready', `organization/${tenant}`, '--timeout=120s']);
    await kubectlApply([object('HttpCronJob', 'yearly', { schedule: '0 0 1 1 *', url: 'https://nobody.invalid/run' })]);
    await beginArchiveToNowhere();
  }, 480_000);
  afterAll(async () => {
    await Promise.all([forward?.stop(), senders?.stop()]);
    await kubectl(['delete', 'organization', tenant, '--ignore-not-found', '--wait=true', '--timeout=120s']);
    await kubectl(['delete', 'namespace', tenant, '--ignore-not-found', '--wait=true', '--timeout=120s']);
    await kubectl(['delete', 'customresourcedefinition', scaledObjects.metadata.name, '--ignore-not-found', '--timeout=120s']);
  }, 400_000);

  test('let the controller delete the namespace that it made for an organization whose data is to go', async () => {
    const organization = { name: `${tenant}-brief` };
    const spec = { namespace: organization.name, deletionPolicy: 'Delete' };
    await kubectlApply([{ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Organization', metadata: organization, spec }]);
    await kubectl(['wait', '--for=condition=Ready', `organization/${organization.name}`, '--timeout=120s']);
    await kubectl(['delete', 'organization', organization.name, '--timeout=120s']);
    await kubectl(['wait', '--for=delete', `namespace/${organization.name}`, '--timeout=120s']);
  }, 500_000);

  test('let the controller delete the resources of an organization from a namespace that stays', async () => {
    const organization = { name: `${tenant}-kept` };
    const spec = { namespace: organization.name, deletionPolicy: 'Delete' };
    await kubectlApply([{ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Organization', metadata: organization, spec }]);
    await kubectl(['wait', '--for=condition=Ready', `organization/${organization.name}`, '--timeout=120s']);
    const inKept = (...args: string[]) => kubectl(['-n', organization.name, ...args]);
    await inKept('create', 'configmap', 'foreign');
    await kubectlApply([object('Source', 'orders', { provider: 'generic' }, organization.name)]);
    await inKept('wait', '--for=condition=Ready', 'source/orders', '--timeout=120s');
    try {
      await kubectl(['delete', 'organization', organization.name, '--timeout=120s']);
      expect(await inKept('get', 'source', '-o', 'name')).toBe('');
      expect(await inKept('get', 'configmap', 'foreign', '-o', 'name')).toContain('foreign');
    } finally {
      await kubectl(['delete', 'namespace', organization.name, '--wait=false']);
    }
  }, 500_000);

  test('let the controller delete a replay whose time is over', async () => {
    await kubectlApply([object('Replay', 'brief', { what: 'deliveries', dryRun: true, ttlSecondsAfterFinished: 0 })]);
    await inTenant('wait', '--for=delete', 'replay/brief', '--timeout=120s');
  }, 400_000);

  test('let the API make, change and delete resources of each kind with their secrets, and ask who a token is', async () => {
    const made: string[] = [];
    const make = async (path: string, body: object, change: object | null): Promise<string> => {
      const answer = await rest.send('POST', `/api/${path}`, body);
      expect([path, answer.status]).toEqual([path, 201]);
      const { id } = answer.body.data ?? answer.body.apiKey ?? answer.body.cronJob ?? answer.body;
      made.unshift(`/api/${path}/${id}`);
      if (change !== null) expect([path, (await rest.send('PATCH', `/api/${path}/${id}`, change)).status]).toEqual([path, 200]);
      return id;
    };
    const sourceId = await make('sources', { name }, { description: 'changed' });
    const credential = { authType: 'bearer', authConfig: { token: 'a-long-random-token' } };
    const nowhere = await make('destinations', { name, url: 'https://nobody.invalid/hooks', ...credential }, { authType: 'none' });
    const routeId = await make('routes', { name, sourceId, destinationIds: [nowhere], circuitFailureThreshold: 1 }, { priority: 1 });
    await make('filters', { name, conditions: [{ field: 'payload.amount', operator: 'gte', value: 1000 }] }, { logic: 'OR' });
    await make('transforms', { name, type: 'jsonata', code: '{"id": payload.id}' }, { code: '{"order": payload.id}' });
    await make('schemas', { name, jsonSchema: { type: 'object' } }, { jsonSchema: { type: 'object', required: ['id'] } });
    const config = { webhookUrl: 'https://hooks.slack.com/services/T000/B000/XXXX' };
    await make('notification-channels', { name, type: 'slack', config }, { enabled: false });
    await make('cron', { name, cronExpression: '0 0 1 1 *', url: 'https://nobody.invalid/run' }, { timezone: 'Europe/Berlin' });
    await make('event-types', { name: `permissions.${tenant.replaceAll('-', '_')}` }, { displayName: 'Changed' });
    await make('api-keys', { name, role: 'viewer' }, null);
    await make('replays', { name: tenant, what: 'deliveries', dryRun: true }, { suspend: true });

    const token = await kubectl(['create', 'token', 'default', '--namespace', 'default', '--audience', 'posthorn']);
    expect((await restWith(token.trim()).send('GET', '/api/filters')).status).toBe(404);

    // What cannot be delivered opens the circuit, and the controller shows it.
    const { slug } = (await rest.send('GET', `/api/sources/${sourceId}`)).body;
    const event = { headers: { 'content-type': 'application/json' }, body: Buffer.from('{"id":1}') };
    expect((await ingest(`http://127.0.0.1:${senders.port}`, `default/${slug}`, event)).status).toBe(200);
    await eventually('the circuit to be shown', 60_000, async () => {
      const { items } = JSON.parse(await kubectl(['-n', 'default', 'get', 'routes,destinations', '-o', 'json']));
      const shown = withCircuit.parse(items).filter(({ status }) => status?.id === routeId || status?.id === nowhere);
      return shown.length === 2 && shown.every(({ status }) => status?.circuit !== undefined);
    });
    const told = await rest.send('GET', `/api/manifests/${nowhere}/events`);
    expect([told.status, told.body.isKept]).toEqual([200, true]);
    for (const path of made) expect([200, 204]).toContain((await rest.send('DELETE', path)).status);
  }, 400_000);

  test('let the API find what is declared by its name, and the controller show the circuit of a declared endpoint', async () => {
    const declared = (kind: string, spec: object, objectName = tenant) => object(kind, objectName, spec, 'default');
    const eventType = `permissions.${tenant}.failed`;
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: tenant, namespace: 'default' } };
    const endpoint = {
      applicationRef: { name: tenant },
      url: 'https://nobody.invalid/hooks',
      signingSecretRef: { name: tenant, key: 'secret' },
      circuit: { failureThreshold: 1, cooldownSeconds: 3600 },
    };
    const objects = [
      { ...secret, stringData: { secret: `whsec_${randomBytes(32).toString('base64')}` } },
      declared('WebhookEventType', { name: eventType.replaceAll('-', '_') }, eventType),
      declared('WebhookApplication', {}),
      declared('WebhookEndpoint', endpoint),
      declared('WebhookSubscription', { endpointRef: { name: tenant }, eventTypeRef: { name: eventType } }),
    ];
    await kubectlApply(objects);
    try {
      const [, ...resources] = objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
      await inDefault('wait', '--for=condition=Ready', ...resources, '--timeout=120s');
      for (const family of ['applications', 'endpoints', 'subscriptions']) {
        const byName = `/api/webhook-${family}/${tenant}`;
        // The server follows what the controller writes.
        const { id, body } = await eventually(async () => {
          const answer = await rest.send('GET', byName);
          const { id: shown } = answer.body.data ?? answer.body;
          expect([family, answer.status, shown]).toEqual([family, 200, expect.stringMatching(/^(app|ep|sub)_/)]);
          return { id: shown, body: answer.body };
        });
        expect((await rest.send('GET', `/api/webhook-${family}/${id}`)).body).toEqual(body);
        const refused = await rest.send('DELETE', byName);
        expect([family, refused.status, refused.headers.get('x-error-code')]).toEqual([family, 409, 'FIELD_MANAGED']);
        expect(refused.body.message).toContain(`is managed by the custom resource default/${tenant}. Change it there.`);
      }
      const sent = await rest.send('POST', '/api/send-event', { eventType: eventType.replaceAll('-', '_'), payload: { id: 1 } });
      expect([sent.status, sent.body.data?.messagesQueued]).toEqual([201, 1]);
      await inDefault('wait', '--for=condition=Delivering=False', `webhookendpoint/${tenant}`, '--timeout=120s');
      expect(await inDefault('get', 'webhookendpoint', tenant, '-o', 'jsonpath={.status.circuit.state}')).toBe('open');
    } finally {
      for (const { kind, metadata } of objects) await inDefault('delete', kind, metadata.name, '--timeout=120s');
    }
  }, 400_000);

  test('let the controller make a pool, leave it to an autoscaler and open its network, and end it', async () => {
    const names = ['horizontalpodautoscaler/posthorn-delivery-permissions', 'networkpolicy/posthorn-delivery-permissions'];
    await pool({ autoscaling: { mode: 'hpa', min: 1, max: 1 } });
    for (const made of names) await inSystem('wait', '--for=create', made, '--timeout=120s');
    await pool({ replicas: 0, networkPolicy: { enabled: false } });
    for (const gone of names) await inSystem('wait', '--for=delete', gone, '--timeout=120s');
    await inSystem('delete', 'deliverypool', 'permissions', '--wait=true', '--timeout=120s');
  }, 400_000);

  test('let the controller say that an archive cannot be written', async () => {
    await kubectl(['wait', '--for=condition=Archiving=False', `organization/${tenant}`, '--timeout=180s']);
    const said = '{.status.conditions[?(@.type=="Archiving")].reason}';
    expect(await kubectl(['get', 'organization', tenant, '-o', `jsonpath=${said}`])).toBe('CannotBeWritten');
    await applyOrganization({ limits: { objectsPerKind: 100 } });
  }, 240_000);

  test('let the controller say that the recipients of a channel have not confirmed their address', async () => {
    const email = { addresses: ['nobody@nobody.invalid'] };
    await kubectlApply([object('NotificationChannel', 'mails', { type: 'email', email })]);
    // The controller checks twice a minute.
    await inTenant('wait', '--for=condition=RecipientsConfirmed=False', 'notificationchannel/mails', '--timeout=120s');
    await inTenant('wait', '--for=condition=Ready', 'notificationchannel/mails', '--timeout=120s');
  }, 240_000);

  test('let the controller write what it finds of each kind, keep quotas, and report the same thing once more', async () => {
    const quota = (part: string) => inTenant('get', 'resourcequotas', '-o', `jsonpath={.items[*].${part}}`);
    // A controller makes quotas a minute after its start; until it is counted a quota refuses what it limits.
    await eventually(async () => expect(await quota('status.used')).toContain('count/routes.posthorn.dev'), 180_000);
    const files = globSync('config/samples/*.yaml', { cwd: root }).filter((file) => !/delivery-pool|organization/.test(file));
    const samples = files.flatMap((file) => manifests(readFileSync(root + file, 'utf8')));
    await kubectlApply(samples.map((each) => ({ ...each, metadata: { ...each.metadata, namespace: tenant } })));

    const signed = { url: 'https://nobody.invalid', signingSecretRef: { name: 'late', key: 'secret' } };
    const secret = `--from-literal=secret=whsec_${randomBytes(32).toString('base64')}`;
    const lateIsReady = (status: 'True' | 'False') =>
      inTenant('wait', `--for=condition=Ready=${status}`, 'destination/late', '--timeout=120s');
    await kubectlApply([object('Destination', 'late', { type: 'http', http: signed })]);
    await lateIsReady('False');
    await inTenant('create', 'secret', 'generic', 'late', secret);
    await lateIsReady('True');
    await inTenant('delete', 'secret', 'late');
    await lateIsReady('False');

    await applyOrganization({ limits: { objectsPerKind: 101 } });
    await eventually(async () => expect(await quota('spec.hard')).toContain('"101"'), 90_000);
    await applyOrganization({});
    await eventually(async () => expect(await quota('metadata.name')).toBe(''), 90_000);
    // The times of cron jobs are written every half a minute.
    await eventually(
      async () => expect(await inTenant('get', 'httpcronjob', 'yearly', '-o', 'json')).toContain('nextScheduleTime'),
      180_000,
    );
    await kubectl(['delete', 'organization', tenant, '--wait=true', '--timeout=120s']);
  }, 900_000);

  test('let the controller leave a pool to KEDA, put back what others have changed of it, and take it from KEDA again', async () => {
    const name = 'posthorn-delivery-permissions';
    const scaledObject = `scaledobject/${name}`;
    const read = async () => withSpec.parse(JSON.parse(await inSystem('get', scaledObject, '-o', 'json')));
    await pool({ autoscaling: { mode: 'keda', min: 1, max: 3, targetBacklogPerPod: 500 } });
    // The controller checks once a minute whether there is KEDA.
    await inSystem('wait', '--for=create', scaledObject, '--timeout=120s');
    const made = await read();
    const metric = { format: 'prometheus', valueLocation: 'posthorn_backlog_messages', targetValue: '500' };
    const url = expect.stringMatching(/^http:\/\/posthorn-delivery-permissions\.posthorn-system\.svc:\d+\/metrics$/);
    expect(made.spec).toEqual({
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
      minReplicaCount: 1,
      maxReplicaCount: 3,
      triggers: [{ type: 'metrics-api', metricType: 'AverageValue', metadata: { url, ...metric } }],
    });
    if (auditLog !== undefined) {
      const log = new AuditLog(auditLog);
      const watches = `posthorn-controller watch scaledobjects.keda.sh in ${system}`;
      await eventually(() => expect(log.read().used).toContain(watches), 180_000);
    }
    await inSystem('patch', scaledObject, '--type=merge', '--patch', '{"spec":{"maxReplicaCount":9}}');
    await eventually(async () => expect(await read()).toMatchObject({ metadata: { uid: made.metadata.uid }, spec: made.spec }), 60_000);
    await inSystem('delete', scaledObject);
    await inSystem('wait', '--for=create', scaledObject, '--timeout=120s');
    await pool({ replicas: 0 });
    await inSystem('wait', '--for=delete', scaledObject, '--timeout=120s');
    await inSystem('delete', 'deliverypool', 'permissions', '--wait=true', '--timeout=120s');
  }, 600_000);
});
