import { createServer } from 'node:https';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { withLongTimeouts } from '../support/long-timeouts.ts';
import { addressOfThisMachine } from './cluster-world.ts';
import { kubectl, kubectlApply } from './kubectl.ts';

const group = 'external.metrics.k8s.io';
const version = 'v1beta1';
const metric = 'posthorn_backlog_messages';
const namespace = 'posthorn-system';
const inSystem = ['--namespace', namespace];
const metadata = { name: 'backlog-adapter', namespace };
const apiService = `${version}.${group}`;

export interface BacklogAdapter {
  stop(): Promise<void>;
}

/** The backlog of a pool as an external metric: the maximum of its workers' /metrics, as docs/delivery-pools.md requires of an adapter. */
export async function startBacklogAdapter(): Promise<BacklogAdapter> {
  const address = addressOfThisMachine();
  const authority = createCertificateAuthority();
  const server = createServer(authority.issue([address]), async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'https://adapter');
    const [, service] = /^service=(\S+)$/.exec(searchParams.get('labelSelector') ?? '') ?? [];
    const isAsked = pathname === `/apis/${group}/${version}/namespaces/${namespace}/${metric}` && service !== undefined;
    const isDiscovery = pathname === `/apis/${group}/${version}`;
    response.statusCode = isAsked || isDiscovery ? 200 : 404;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(isAsked ? await values(service) : isDiscovery ? discovery : {}));
  });
  withLongTimeouts(server);
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const listening = server.address();
  const port = typeof listening === 'object' && listening !== null ? listening.port : 0;
  await kubectlApply([
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { type: 'ExternalName', externalName: address } },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: apiService },
      spec: {
        group,
        version,
        groupPriorityMinimum: 100,
        versionPriority: 100,
        insecureSkipTLSVerify: true,
        service: { ...metadata, port },
      },
    },
  ]);
  return {
    stop: async () => {
      await kubectl(['delete', 'apiservice', apiService, '--ignore-not-found']);
      await kubectl(['delete', 'service', metadata.name, ...inSystem, '--ignore-not-found']);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      authority.remove();
    },
  };
}

const discovery = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: `${group}/${version}`,
  resources: [{ name: metric, singularName: '', namespaced: true, kind: 'ExternalMetricValueList', verbs: ['get'] }],
};

async function values(service: string): Promise<object> {
  const pool = service.replace('posthorn-delivery-', '');
  const pods = await kubectl(['get', 'pods', ...inSystem, '--selector', `posthorn.dev/delivery-pool=${pool}`, '-o', 'name']).catch(
    () => '',
  );
  const names = pods.split('\n').filter((name) => name !== '');
  const samples = (await Promise.all(names.map((name) => sampleOf(name.replace('pod/', ''))))).filter((sample) => sample !== null);
  const item = { metricName: metric, metricLabels: { service }, timestamp: new Date().toISOString(), value: String(Math.max(...samples)) };
  return { kind: 'ExternalMetricValueList', apiVersion: `${group}/${version}`, metadata: {}, items: samples.length === 0 ? [] : [item] };
}

/** Null: a pod that begins or ends, or that Redis has not answered. */
async function sampleOf(pod: string): Promise<number | null> {
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}:9090/proxy/metrics`;
  const text = await kubectl(['get', '--raw', path, '--request-timeout=5s']).catch(() => '');
  const [, value] = new RegExp(`^${metric} (\\S+)$`, 'm').exec(text) ?? [];
  return value === undefined ? null : Number(value);
}
