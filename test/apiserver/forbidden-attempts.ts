// What the ServiceAccounts of the api and the controller try in rights.test.ts.
// Names that occur nowhere in config: the chart has to put them into its rules and policies.
export const namespace = 'hooks';
export const fullname = 'relay-posthorn';
export const bindingNames = [`${fullname}-organization-api`, `${fullname}-organization-controller`];
export const rbac = '/apis/rbac.authorization.k8s.io/v1';

/** A request of a service account that must be refused. */
export interface Attempt {
  by: 'api' | 'controller';
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: object;
}
type Attempts = readonly (readonly [what: string, attempt: Attempt])[];

const secretOf = (type: string, labels: object, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'made', labels, ...more },
  type,
});
const ours = { 'app.kubernetes.io/managed-by': 'posthorn' };
const tokenSecret = secretOf('kubernetes.io/service-account-token', ours, {
  annotations: { 'kubernetes.io/service-account.name': 'default' },
});
const makeSecret = (by: Attempt['by'], within: string, body: object): Attempt => ({
  by,
  method: 'POST',
  path: `/api/v1/namespaces/${within}/secrets`,
  body,
});
const bind = (within: string, role: string, account = `${fullname}-controller`, name = bindingNames[1]): Attempt => ({
  by: 'controller',
  method: 'PATCH',
  path: `${rbac}/namespaces/${within}/rolebindings/${name}?fieldManager=posthorn-controller&force=true`,
  body: {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
  },
});
const label = (name: string, metadata: object): Attempt => ({
  by: 'controller',
  method: 'PATCH',
  path: `/api/v1/namespaces/${name}?fieldManager=posthorn-controller&force=true`,
  body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...metadata } },
});
const postNamespace = (metadata: object): Attempt => ({
  by: 'controller',
  method: 'POST',
  path: '/api/v1/namespaces',
  body: { apiVersion: 'v1', kind: 'Namespace', metadata },
});
const write = (path: string, body: object): Attempt => ({
  by: 'controller',
  method: 'PATCH',
  path: `${path}?fieldManager=test&force=true`,
  body,
});
const quotaIn = (within: string, hard: object): Attempt =>
  write(`/api/v1/namespaces/${within}/resourcequotas/posthorn`, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'posthorn' },
    spec: { hard },
  });
const pool = 'mine';
const poolObject = `posthorn-delivery-${pool}`;
const poolLabel = { 'posthorn.dev/delivery-pool': pool };
const ownedBy = (name: string) => [{ apiVersion: 'posthorn.dev/v1alpha1', kind: 'DeliveryPool', name, uid: 'c0ffee', controller: true }];
const poolKinds = {
  Deployment: 'apps/v1',
  Service: 'v1',
  ServiceAccount: 'v1',
  PodDisruptionBudget: 'policy/v1',
  NetworkPolicy: 'networking.k8s.io/v1',
  HorizontalPodAutoscaler: 'autoscaling/v2',
  ScaledObject: 'keda.sh/v1alpha1',
};
export type PoolKind = keyof typeof poolKinds;
export const pathOfKind = (kind: PoolKind): string => {
  const plural = kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`;
  return `/${poolKinds[kind] === 'v1' ? 'api' : 'apis'}/${poolKinds[kind]}/namespaces/${namespace}/${plural.toLowerCase()}`;
};
/** As a pool's, apart from what is given. */
const poolObjectOf = (kind: PoolKind, content: object, metadata: object = {}): Attempt => {
  const named = { name: poolObject, ownerReferences: ownedBy(pool), ...metadata };
  return write(`${pathOfKind(kind)}/${named.name}`, { apiVersion: poolKinds[kind], kind, metadata: named, ...content });
};
const remove = (kind: PoolKind, name: string): Attempt => ({ by: 'controller', method: 'DELETE', path: `${pathOfKind(kind)}/${name}` });
const serviceOf = (spec: object, metadata: object = {}): Attempt =>
  poolObjectOf('Service', { spec: { ports: [{ port: 80 }], selector: poolLabel, ...spec } }, metadata);
const networkPolicyOf = (podSelector: object, metadata: object = {}): Attempt =>
  poolObjectOf('NetworkPolicy', { spec: { podSelector, policyTypes: ['Ingress'], ingress: [{}] } }, metadata);
const autoscalerOf = (name: string, kind = 'Deployment', metadata: object = {}): Attempt =>
  poolObjectOf(
    'HorizontalPodAutoscaler',
    { spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind, name }, minReplicas: 1, maxReplicas: 2 } },
    metadata,
  );
const scaledObjectOf = (metadata: object = {}, name = poolObject, url = `http://${poolObject}.${namespace}.svc:9090/metrics`): Attempt =>
  poolObjectOf(
    'ScaledObject',
    {
      spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name }, triggers: [{ type: 'metrics-api', metadata: { url } }] },
    },
    metadata,
  );
const budgetOf = (matchLabels: object, metadata: object = {}): Attempt =>
  poolObjectOf('PodDisruptionBudget', { spec: { maxUnavailable: 0, selector: { matchLabels } } }, metadata);
const podSecurity = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } };
const podLabels = { ...poolLabel, 'app.kubernetes.io/component': 'delivery' };
/** As a pool's, apart from what is given. */
const deploymentWith = (pod: object, container: object = {}, metadata: object = {}, labels: Record<string, string> = podLabels): Attempt =>
  poolObjectOf(
    'Deployment',
    {
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: poolObject,
            automountServiceAccountToken: false,
            securityContext: podSecurity,
            containers: [
              {
                name: 'a',
                image: 'a',
                securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, ...container },
              },
            ],
            ...pod,
          },
        },
      },
    },
    metadata,
  );
/** Objects of others in the namespace of the installation, as a cluster administrator makes them. */
export const foreignPoolObjects: readonly Attempt[] = [
  networkPolicyOf({}, { name: 'somebodys', ownerReferences: [] }),
  networkPolicyOf({}, { name: 'posthorn-delivery-somebodys', ownerReferences: [] }),
  autoscalerOf('somebodys', 'Deployment', { name: 'somebodys', ownerReferences: [] }),
  budgetOf({ a: 'b' }, { name: 'posthorn-delivery-somebodys', ownerReferences: [] }),
];
const organizationLabel = { 'posthorn.dev/organization': 'acme' };
const madeFor = { 'posthorn.dev/made-for': 'somebody' };
const [apiRole = '', controllerRole = ''] = bindingNames;

/** What the policies refuse, whatever RBAC grants. */
export const attemptsAgainstPolicies: Attempts = [
  ['a token of a ServiceAccount in kube-system', makeSecret('api', 'kube-system', tokenSecret)],
  ['a token of a ServiceAccount in the namespace of an organization', makeSecret('api', 'acme', tokenSecret)],
  ['a Secret that is not labelled as Posthorn’s', makeSecret('api', 'acme', secretOf('Opaque', {}))],
  ['a Secret of another type', makeSecret('api', 'acme', secretOf('example.com/other', ours))],
  ['a Secret where no organization lives', makeSecret('api', 'victim', secretOf('Opaque', ours))],
  [
    'a Secret of somebody else, which it labels as its own',
    {
      by: 'api',
      method: 'PATCH',
      path: '/api/v1/namespaces/acme/secrets/own?fieldManager=posthorn-api&force=true',
      body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'own', labels: ours }, type: 'Opaque' },
    },
  ],
  ['a Secret of somebody else, which it deletes', { by: 'api', method: 'DELETE', path: '/api/v1/namespaces/acme/secrets/own' }],
  ['a token of a ServiceAccount, by the controller', makeSecret('controller', 'acme', tokenSecret)],
  ['another role in the namespace of an organization', bind('acme', 'cluster-admin', undefined, 'other')],
  ['another role under the name of one of its bindings', bind('victim', 'admin')],
  ['its role for somebody else', bind('acme', controllerRole, 'default')],
  ['its role for the api', bind('acme', controllerRole, `${fullname}-api`)],
  ['its role in kube-system', bind('kube-system', controllerRole)],
  ['the role of the api in its own namespace', bind(namespace, apiRole, `${fullname}-api`, apiRole)],
  ['its role where no organization lives', bind('victim', controllerRole)],
  ['its role in a protected namespace', bind('guarded', controllerRole)],
  ['the label of an organization on kube-system', label('kube-system', { labels: organizationLabel })],
  ['the label of an organization on its own namespace', label(namespace, { labels: organizationLabel })],
  ['the label of an organization on a protected namespace', label('guarded', { labels: organizationLabel })],
  ['another label on a namespace', label('victim', { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } })],
  ['a mark by which it could delete a namespace', label('victim', { labels: organizationLabel, annotations: madeFor })],
  [
    'an owner that is gone, so that the garbage collector deletes the namespace',
    label('victim', {
      ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: 'gone', uid: 'c0ffee00-0000-4000-8000-000000000000' }],
    }),
  ],
  ['a finalizer on a namespace', label('victim', { finalizers: ['example.com/never'] })],
  ['another annotation on a namespace', label('victim', { annotations: { 'scheduler.alpha.kubernetes.io/node-selector': 'a=b' } })],
  [
    'the end of a namespace without the end of what is in it',
    {
      by: 'controller',
      method: 'PUT',
      path: '/api/v1/namespaces/victim/finalize',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'victim' }, spec: { finalizers: [] } },
    },
  ],
  ['a namespace for no organization', label('anybodys', {})],
  [
    'a namespace whose generated name begins with kube-',
    postNamespace({ generateName: 'kube-', labels: organizationLabel, annotations: madeFor }),
  ],
  [
    'a namespace of privileged pods',
    postNamespace({
      name: 'privileged',
      labels: { ...organizationLabel, 'pod-security.kubernetes.io/enforce': 'privileged' },
      annotations: madeFor,
    }),
  ],
  ['a quota where no organization lives', quotaIn('kube-system', { 'count/filters.posthorn.dev': '1' })],
  ['a quota of pods where an organization lives', quotaIn('acme', { pods: '0' })],
  ['a Service that takes addresses from outside of the cluster', serviceOf({ externalIPs: ['192.0.2.1'] })],
  ['a Service on the nodes', serviceOf({ type: 'NodePort' })],
  ['the Service of the api', serviceOf({}, { name: `${fullname}-api` })],
  ['a Deployment that is no pool’s', deploymentWith({}, {}, { name: `${fullname}-mine` })],
  ['pods under the ServiceAccount of the api', deploymentWith({ serviceAccountName: `${fullname}-api` })],
  ['pods with a token', deploymentWith({ automountServiceAccountToken: true })],
  [
    'pods with a token in a volume',
    deploymentWith({ volumes: [{ name: 'a', projected: { sources: [{ serviceAccountToken: { path: 'a' } }] } }] }),
  ],
  ['pods with a directory of the node', deploymentWith({ volumes: [{ name: 'a', hostPath: { path: '/' } }] })],
  ['pods in the network of the node', deploymentWith({ hostNetwork: true })],
  ['pods that see the processes of the node', deploymentWith({ hostPID: true })],
  ['pods that may become root', deploymentWith({}, { allowPrivilegeEscalation: true })],
  ['pods with a capability', deploymentWith({}, { capabilities: { drop: ['ALL'], add: ['NET_RAW'] } })],
  ['pods of root', deploymentWith({}, { runAsNonRoot: false, runAsUser: 0 })],
  ['pods without a filter of system calls', deploymentWith({ securityContext: { runAsNonRoot: true } })],
  ['a container without a filter of system calls', deploymentWith({}, { seccompProfile: { type: 'Unconfined' } })],
  ['pods of another SELinux type', deploymentWith({ securityContext: { ...podSecurity, seLinuxOptions: { type: 'spc_t' } } })],
  ['pods with a setting of the kernel', deploymentWith({ securityContext: { ...podSecurity, sysctls: [{ name: 'a', value: '1' }] } })],
  ['a container of another SELinux type', deploymentWith({}, { seLinuxOptions: { type: 'spc_t' } })],
  ['a container without a profile of AppArmor', deploymentWith({}, { appArmorProfile: { type: 'Unconfined' } })],
  ['a container that sees all of /proc', deploymentWith({ hostUsers: false }, { procMount: 'Unmasked' })],
  ['pods that begin with another container', deploymentWith({ initContainers: [{ name: 'b', image: 'a', securityContext: {} }] })],
  ['a ServiceAccount that is no pool’s', poolObjectOf('ServiceAccount', {}, { name: `${fullname}-api` })],
  ['a ServiceAccount with the name of a pool that does not own it', poolObjectOf('ServiceAccount', {}, { ownerReferences: [] })],
  ['a Deployment of another pool’s', deploymentWith({}, {}, { ownerReferences: ownedBy('other') })],
  ['workers that look like the api', deploymentWith({}, {}, {}, { ...podLabels, 'app.kubernetes.io/component': 'api' })],
  ['a Service that leads to other pods', serviceOf({ selector: { 'app.kubernetes.io/component': 'redis' } })],
  ['a Service that leads to all pods', serviceOf({ selector: { ...poolLabel, 'posthorn.dev/delivery-pool': 'other' } })],
  ['a NetworkPolicy of another name', networkPolicyOf({ matchLabels: poolLabel }, { name: `${fullname}-redis` })],
  ['a NetworkPolicy that opens all pods', networkPolicyOf({})],
  ['a NetworkPolicy that opens Redis', networkPolicyOf({ matchLabels: { 'app.kubernetes.io/component': 'redis' } })],
  [
    'a NetworkPolicy of somebody else, which it changes',
    networkPolicyOf({ matchLabels: poolLabel }, { name: 'posthorn-delivery-somebodys', ownerReferences: ownedBy('somebodys') }),
  ],
  ['a NetworkPolicy of somebody else, which it deletes', remove('NetworkPolicy', 'somebodys')],
  ['a NetworkPolicy of somebody else with a name like a pool’s, which it deletes', remove('NetworkPolicy', 'posthorn-delivery-somebodys')],
  ['an autoscaler of another name', autoscalerOf(poolObject, 'Deployment', { name: 'mine' })],
  ['an autoscaler of the api', autoscalerOf(`${fullname}-api`)],
  ['an autoscaler of a StatefulSet', autoscalerOf(poolObject, 'StatefulSet')],
  ['an autoscaler of somebody else, which it deletes', remove('HorizontalPodAutoscaler', 'somebodys')],
  ['a ScaledObject of another name', scaledObjectOf({ name: 'mine' })],
  ['a ScaledObject of the api', scaledObjectOf({}, `${fullname}-api`)],
  ['a ScaledObject by which KEDA asks another server', scaledObjectOf({}, poolObject, 'http://169.254.169.254/metrics')],
  ['a ScaledObject by which KEDA asks a server with a name like a pool’s', scaledObjectOf({}, poolObject, `http://${poolObject}.example/`)],
  ['a PodDisruptionBudget of another name', budgetOf(poolLabel, { name: 'mine' })],
  ['a PodDisruptionBudget of all pods', budgetOf({})],
  ['a PodDisruptionBudget of Redis', budgetOf({ 'app.kubernetes.io/component': 'redis' })],
  [
    'a PodDisruptionBudget of somebody else, which it changes',
    budgetOf({ 'posthorn.dev/delivery-pool': 'somebodys' }, { name: 'posthorn-delivery-somebodys', ownerReferences: ownedBy('somebodys') }),
  ],
  ['a namespace that it did not make, which it deletes', { by: 'controller', method: 'DELETE', path: '/api/v1/namespaces/victim' }],
  ['kube-node-lease, which it deletes', { by: 'controller', method: 'DELETE', path: '/api/v1/namespaces/kube-node-lease' }],
];
const tokenRequest = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
const everything = { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] };
const byEither: Attempts = (['api', 'controller'] as const).flatMap(
  (by): Attempts => [
    [`a Secret elsewhere, by the ${by}`, { by, method: 'GET', path: '/api/v1/namespaces/victim/secrets/own' }],
    [`Secrets of kube-system, by the ${by}`, { by, method: 'GET', path: '/api/v1/namespaces/kube-system/secrets' }],
    [`Secrets of all namespaces, by the ${by}`, { by, method: 'GET', path: '/api/v1/secrets' }],
    [
      `a token in kube-system, by the ${by}`,
      { by, method: 'POST', path: '/api/v1/namespaces/kube-system/serviceaccounts/default/token', body: tokenRequest },
    ],
    [
      `a token of the controller, by the ${by}`,
      { by, method: 'POST', path: `/api/v1/namespaces/${namespace}/serviceaccounts/${fullname}-controller/token`, body: tokenRequest },
    ],
    [
      `a token where an organization lives, by the ${by}`,
      { by, method: 'POST', path: '/api/v1/namespaces/acme/serviceaccounts/default/token', body: tokenRequest },
    ],
    [
      `a role that may do everything, by the ${by}`,
      { by, method: 'PATCH', path: `${rbac}/clusterroles/${controllerRole}?fieldManager=test`, body: everything },
    ],
    [
      `a binding for the whole cluster, by the ${by}`,
      {
        by,
        method: 'POST',
        path: `${rbac}/clusterrolebindings`,
        body: { metadata: { name: 'mine' }, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: controllerRole } },
      },
    ],
    [`the RoleBindings of all, by the ${by}`, { by, method: 'GET', path: `${rbac}/rolebindings` }],
  ],
);
/** What RBAC does not grant. */
export const attemptsBeyondRights: Attempts = [
  [
    'the Lease of somebody else',
    { by: 'controller', method: 'GET', path: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/other` },
  ],
  ['the Deployment of a pool, which it deletes', remove('Deployment', poolObject)],
  ...byEither,
  ['a role that the api binds', { ...bind('acme', apiRole, `${fullname}-api`, apiRole), by: 'api' }],
  [
    'a Secret of the installation, by the api',
    { by: 'api', method: 'GET', path: `/api/v1/namespaces/${namespace}/secrets/${fullname}-encryption` },
  ],
  ['the Secrets of an organization as a list, by the api', { by: 'api', method: 'GET', path: '/api/v1/namespaces/acme/secrets' }],
];
