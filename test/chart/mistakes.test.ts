import { describe, expect, test } from '@jest/globals';
import { manifests, template } from '../support/helm.ts';

describe('values that cannot be meant', () => {
  test.each([
    ['a name that is not known', 'replicas=3', 'replicas'],
    ['one below a known name', 'api.replica=3', 'replica'],
    ['a wrong type', 'api.replicas=many', 'api/replicas'],
    ['an Ingress without a host', 'ingress.enabled=true', 'ingress/host'],
    ['an HTTPRoute without a Gateway', 'httpRoute.enabled=true', 'httpRoute/parentRefs'],
    ['an Ingress of hosts without a name', 'ingress.enabled=true,ingress.hosts[0].paths={/api/}', 'ingress/hosts/0'],
    ['a resource that workers do not take', 'delivery.resources.limits.gpu=1', 'delivery/resources/limits'],
    [
      'a variable of the workers from a field of the pod',
      'delivery.extraEnv[0].name=A,delivery.extraEnv[0].valueFrom.fieldRef.fieldPath=a',
      'fieldRef',
    ],
    ['a toleration of another effect', 'delivery.tolerations[0].effect=Sometimes', 'delivery/tolerations/0/effect'],
    ['a toleration with another field', 'delivery.tolerations[0].keys=a', 'delivery/tolerations/0'],
    ['a volume of the node for workers', 'delivery.extraVolumes[0].name=a,delivery.extraVolumes[0].hostPath.path=/', 'hostPath'],
    [
      'a Secret volume of workers with the name of a ConfigMap',
      'delivery.extraVolumes[0].name=a,delivery.extraVolumes[0].secret.name=b',
      'secret',
    ],
    ['a DNS setting that there is not', 'delivery.dnsConfig.server=10.0.0.1', 'delivery/dnsConfig'],
    ['a label of workers that is too long', `delivery.podLabels.a=${'b'.repeat(64)}`, 'delivery/podLabels/a'],
    ['an alias without names', 'delivery.hostAliases[0].ip=10.0.0.1', 'delivery/hostAliases/0'],
    [
      'more networks than an Organization takes',
      `organization.allowedCidrs={${Array(65).fill('10.0.0.0/8').join(',')}}`,
      'organization/allowedCidrs',
    ],
    ['a base path that ends with a slash', 'console.basePath=/posthorn/', 'console/basePath'],
    ['a host with a path', 'policies.egressHosts.hosts={a.example/b}', 'policies/egressHosts/hosts'],
    ['pods of root', 'podSecurity.runAsUser=0', 'podSecurity/runAsUser'],
    ['alerts by e-mail without a sender', 'smtp.host=mail', 'smtp/from'],
    ['confirmation of addresses without the address of the page', 'smtp.requireConfirmation=true', 'api/publicUrl'],
  ])('values that cannot be meant are refused: %s', async (_, values, named) => {
    await expect(template('--set', values)).rejects.toThrow(new RegExp(`values don't meet the specifications[\\s\\S]*${named}`));
  });

  const scaled = 'delivery.autoscaling.enabled=true,delivery.autoscaling';
  const own = 'redis.url=redis://a';
  test.each([
    [`${scaled}.min=9,${scaled}.max=3`, 'delivery.autoscaling.min is 9: it must be at most delivery.autoscaling.max, which is 3'],
    [`${scaled}.mode=hpa,${scaled}.min=0`, 'delivery.autoscaling.min is 0: it must be at least 1 with the mode hpa'],
    [`${scaled}.mode=keda,${scaled}.min=0`, 'delivery.autoscaling.min is 0: it must be at least 1 with the mode keda'],
    ...['api', 'ingest'].map((role) => [
      `${role}.autoscaling.enabled=true,${role}.autoscaling.minReplicas=9,${role}.autoscaling.maxReplicas=3`,
      `${role}.autoscaling.minReplicas is 9: it must be at most ${role}.autoscaling.maxReplicas, which is 3`,
    ]),
    ['organization.namespace=kube-system', 'organization.namespace is kube-system: it must not be a namespace of Kubernetes itself'],
    [
      'organization.namespace=posthorn-system',
      'organization.namespace is posthorn-system: it must not be the namespace of the installation',
    ],
    ...['organization.allowedCidrs', 'egress.allowedCidrs', 'api.trustedProxies'].flatMap((name) =>
      ['10.0.0.0/99', '10.0.0.256/8', '10.0.0.0', 'everywhere', 'fd00/8', 'fd00::/129', '10.0.0.0/08'].map((network) => [
        `${name}={10.0.0.0/8,${network}}`,
        `${name} has "${network}": it must be a network such as 10.0.0.0/8 or fd00::/8`,
      ]),
    ),
    ...['organization.allowedHosts', 'egress.allowedHosts'].map((name) => [
      `${name}={https://a.example}`,
      `${name} has "https://a.example": it must be a host name; *. may precede it`,
    ]),
    ...['/api', '/console/a', '/ingest'].map((path) => [
      `console.basePath=${path}`,
      `console.basePath is ${path}: it must not begin with a path that Posthorn answers itself`,
    ]),
    ['image.tag=bad tag', 'image.tag is "bad tag": it must be a tag of an image'],
    ['image.repository=posthorn:1', 'image.repository is "posthorn:1": it must be the name of an image without a tag'],
    ['redis.bundled.image.tag=-', 'redis.bundled.image.tag is "-": it must be a tag of an image'],
    ...['controller', 'api', 'ingest', 'delivery', 'redis.bundled'].map((name) => [
      `${name}.resources.limits.memory=lots`,
      `${name}.resources.limits.memory is "lots": it must be a quantity such as 500m or 512Mi`,
    ]),
    ['api.resources.request.cpu=1', 'api.resources.request is not known: resources have requests and limits'],
    ['redis.mode=sentinel', 'redis.mode is sentinel: it needs redis.url or redis.existingSecret, with the addresses of the sentinels'],
    ['redis.mode=cluster', 'redis.mode is cluster: it needs redis.url or redis.existingSecret, with the addresses of the nodes'],
    [`${own},redis.existingSecret=b`, 'redis.url and redis.existingSecret are both set: give one of them'],
    [
      'redis.bundled.maxMemory=2gb',
      'redis.bundled.maxMemory is 2gb: it must be at most redis.bundled.resources.limits.memory, which is 768Mi',
    ],
    ...['controller', 'api', 'ingest', 'delivery'].flatMap((role) => [
      [`${role}.extraEnv[0].name=a-b`, `${role}.extraEnv has the name "a-b": it must be letters, digits and _`],
      [
        `${role}.extraEnv[0].name=A,${role}.extraEnv[0].value=b,${role}.extraEnv[0].valueFrom.secretKeyRef.name=s,${role}.extraEnv[0].valueFrom.secretKeyRef.key=k`,
        `${role}.extraEnv has value and valueFrom for A: give one of them`,
      ],
      [
        `${role}.extraVolumeMounts[0].name=a,${role}.extraVolumeMounts[0].mountPath=/a`,
        `${role}.extraVolumeMounts names a: ${role}.extraVolumes does not have it`,
      ],
      [
        `${role}.extraVolumes[0].name=redis,${role}.extraVolumes[0].secret.secretName=s`,
        `${role}.extraVolumes has redis: the chart has a volume of this name`,
      ],
      [`${role}.podLabels.team=a b`, `${role}.podLabels.team is "a b": it must be the value of a label`],
    ]),
    [
      'delivery.extraEnv[0].name=A,delivery.extraEnv[0].valueFrom.secretKeyRef.name=s,delivery.extraEnv[0].valueFrom.secretKeyRef.key=k,delivery.extraEnv[0].valueFrom.configMapKeyRef.name=c,delivery.extraEnv[0].valueFrom.configMapKeyRef.key=k',
      'delivery.extraEnv must have one of secretKeyRef and configMapKeyRef in each valueFrom',
    ],
    ['delivery.extraVolumes[0].name=a', 'delivery.extraVolumes must have one of configMap and secret in a'],
    ['delivery.hostAliases[0].ip=x,delivery.hostAliases[0].hostnames={b}', 'delivery.hostAliases has "x": it must be an IP address'],
    ['annotations.helm\\.sh/resource-policy=keep', 'annotations has helm.sh/resource-policy: Helm would keep every object'],
    [
      'ingress.enabled=true,ingress.host=a.example,ingress.hosts[0].host=a.example',
      'ingress.hosts has a host twice, or that of ingress.host',
    ],
    ['api.service.loadBalancerClass=a', 'api.service.type is ClusterIP: loadBalancerClass and loadBalancerSourceRanges need LoadBalancer'],
    [
      'ingest.service.externalTrafficPolicy=Local',
      'ingest.service.type is ClusterIP: externalTrafficPolicy needs NodePort or LoadBalancer',
    ],
    ['redis.bundled.maxMemory=769mb', 'redis.bundled.maxMemory is 769mb'],
  ])('values that cannot be meant are refused in words: %s', async (values = '', complaint = '') => {
    await expect(template('--set', values)).rejects.toThrow(complaint);
  });

  test.each([
    `${scaled}.min=3,${scaled}.max=3`,
    `${scaled}.min=0`,
    'delivery.autoscaling.min=9,delivery.autoscaling.max=3',
    'organization.allowedCidrs={10.0.0.0/8,0.0.0.0/0,fd00::/8,::/0,2001:db8::1/128}',
    'egress.allowedHosts={*.shop.svc.cluster.local,localhost}',
    'image.repository=registry.example.com:5000/team/posthorn,image.tag=v1.2.3_rc.1',
    'api.resources.requests.cpu=1,api.resources.requests.memory=0.5Gi,api.resources.limits.memory=1e9,api.resources.limits.ephemeral-storage=128M',
    'redis.bundled.maxMemory=768mb',
    `${own},redis.mode=cluster,redis.bundled.maxMemory=2gb`,
  ])('values that are unusual and can be meant are taken: %s', async (values) => {
    expect(manifests(await template('--set', values)).length).toBeGreaterThan(10);
  });
});
