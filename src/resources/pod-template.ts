import { z } from 'zod';
import { isRecord } from './field-tree.ts';
import { secretKeyRef } from './fields.ts';
import { text } from './text.ts';

/** Settings of the pods that the controller runs, in the terms of core/v1. */

/** A label or annotation, as free keys: the API server validates the keys with the Deployment. */
const labels = z.record(z.string(), text(0, 63)).meta({ maxProperties: 64 });
export const annotations = z.record(z.string(), text(0, 8192)).meta({ maxProperties: 64 });

const quantityPattern = /^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$/;
const quantity = z
  .union([z.int(), z.string().regex(quantityPattern, 'must be a quantity such as 500m or 1Gi')], {
    error: 'must be a quantity such as 500m or 1Gi',
  })
  .meta({ 'x-kubernetes-int-or-string': true, pattern: quantityPattern.source });

const amounts = z.strictObject({
  cpu: quantity.optional().describe('Cores, such as 500m.'),
  memory: quantity.optional().describe('Bytes of memory, such as 512Mi.'),
  'ephemeral-storage': quantity.optional().describe('Bytes on the disk of the node.'),
});

export const resourceRequirements = z.strictObject({
  requests: amounts.optional().describe('What the scheduler sets aside.'),
  limits: amounts.optional().describe('Resource limits of a pod.'),
});

const configMapKeyRef = z
  .strictObject({
    name: text(1, 253).describe('Name of the ConfigMap, in the same namespace.'),
    key: text(1, 253).describe('Key in the data of the ConfigMap.'),
  })
  .meta({ 'x-kubernetes-map-type': 'atomic' });

const environmentVariable = z.strictObject({
  name: text(1, 253)
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be letters, digits and _')
    .describe('Name of the variable.'),
  value: text(0, 32768).optional().describe('Its value.'),
  valueFrom: z
    .strictObject({
      secretKeyRef: secretKeyRef.optional().describe('A value in a Secret.'),
      configMapKeyRef: configMapKeyRef.optional().describe('A value in a ConfigMap.'),
    })
    .optional()
    .describe('Where the value is instead.'),
});

const toleration = z.strictObject({
  key: text(1, 316).optional().describe('Key of the taint; absent: every taint.'),
  operator: z.enum(['Exists', 'Equal']).optional().describe('Whether the value counts; Equal when absent.'),
  value: text(0, 63).optional().describe('Value of the taint.'),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional().describe('Effect of the taint; absent: every effect.'),
  tolerationSeconds: z.int().min(0).max(31_536_000).optional().describe('For how long a NoExecute taint is tolerated.'),
});

const topologySpreadConstraint = z.strictObject({
  topologyKey: text(1, 316).describe('Label of nodes, such as topology.kubernetes.io/zone.'),
  maxSkew: z.int().min(1).max(1000).default(1).describe('By how many pods the parts may differ.'),
  whenUnsatisfiable: z
    .enum(['ScheduleAnyway', 'DoNotSchedule'])
    .default('ScheduleAnyway')
    .describe('What to do when they would differ more.'),
});

const hostAlias = z.strictObject({
  ip: text(1, 45)
    .regex(/^[0-9A-Fa-f:.]+$/, 'must be an IP address')
    .describe('IP address.'),
  hostnames: z
    .array(text(1, 253))
    .min(1)
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Host names that resolve to this address.'),
});

const dnsConfig = z.strictObject({
  nameservers: z
    .array(text(1, 45))
    .max(3)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe('IP addresses of further DNS servers.'),
  searches: z
    .array(text(1, 253))
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe('Further search domains of names.'),
  options: z
    .array(z.strictObject({ name: text(1, 63).describe('Name, such as ndots.'), value: text(0, 63).optional().describe('Its value.') }))
    .max(16)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe('Options of the resolver.'),
});

const keyToPath = z.strictObject({
  key: text(1, 253).describe('Key in the data of the object.'),
  path: text(1, 253).describe('Relative path of the file.'),
});
const projectedKeys = z
  .array(keyToPath)
  .max(64)
  .meta({ 'x-kubernetes-list-type': 'atomic' })
  .optional()
  .describe('Keys that become files; every key when absent.');

/** Nothing but ConfigMaps and Secrets: workers have no way to their node. */
const volume = z.strictObject({
  name: text(1, 63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'must be lower-case letters, digits and -, and begin and end with a letter or digit')
    .describe('Name by which volumeMounts refer to it.'),
  configMap: z
    .strictObject({ name: text(1, 253).describe('Name of the ConfigMap, in the same namespace.'), items: projectedKeys })
    .optional()
    .describe('Files of a ConfigMap.'),
  secret: z
    .strictObject({ secretName: text(1, 253).describe('Name of the Secret, in the same namespace.'), items: projectedKeys })
    .optional()
    .describe('Files of a Secret.'),
});

const volumeMount = z.strictObject({
  name: text(1, 63).describe('Name of the volume.'),
  mountPath: text(1, 512)
    .regex(/^\/[^:]*$/, 'must be an absolute path without :')
    .describe('Directory of the container in which the files are, for reading only.'),
});

export const podTemplate = z.strictObject({
  labels: labels.optional().describe('Further labels of the pods; those that Posthorn sets stay.'),
  annotations: annotations.optional().describe('Further annotations of the pods.'),
  nodeSelector: labels.optional().describe('Labels that a node must have.'),
  tolerations: z
    .array(toleration)
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe('Taints of nodes that the pods put up with.'),
  affinity: z
    .unknown()
    .refine(isRecord, { error: 'must be an object' })
    .meta({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-map-type': 'atomic' })
    .optional()
    .describe('Affinity of core/v1.'),
  topologySpreadConstraints: z
    .array(topologySpreadConstraint)
    .max(8)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['topologyKey'] })
    .optional()
    .describe(
      'How the pods of this pool are spread; when absent over nodes and zones, where that is possible. With ScheduleAnyway for kubernetes.io/hostname their affinity gets a preference, too: nodes may have no zones.',
    ),
  priorityClassName: text(1, 253).optional().describe('PriorityClass of the pods.'),
  hostAliases: z
    .array(hostAlias)
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['ip'] })
    .optional()
    .describe('Further lines of /etc/hosts.'),
  dnsConfig: dnsConfig.optional().describe('Further DNS settings of the pods.'),
  volumes: z
    .array(volume)
    .max(16)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .optional()
    .describe('Further volumes of the pods: ConfigMaps and Secrets of the same namespace.'),
  volumeMounts: z
    .array(volumeMount)
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['mountPath'] })
    .optional()
    .describe('Where the container has these volumes.'),
  env: z
    .array(environmentVariable)
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .optional()
    .describe('Environment variables, before all others; docs/configuration.md lists those of Posthorn.'),
});
