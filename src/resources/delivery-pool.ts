import { z } from 'zod';
import { cidr, cidrRule } from './cidr.ts';
import { defineKind, type Rule } from './definition.ts';
import { commonStatus, secretKeyRef } from './fields.ts';
import { hostPattern } from './host-pattern.ts';
import { annotations, podTemplate, resourceRequirements } from './pod-template.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';
import { text } from './text.ts';

const objectInNamespace = z.strictObject({
  name: text(1, 253)
    .regex(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
      'must be lower-case letters, digits, - and ., and begin and end with a letter or digit',
    )
    .describe('Name of the Secret, in the same namespace.'),
});

const autoscaling = z.strictObject({
  mode: z
    .enum(['builtin', 'hpa', 'keda'])
    .default('builtin')
    .describe(
      'builtin: the controller scales on the backlog and the age of its oldest message. hpa: a HorizontalPodAutoscaler on the metric posthorn_backlog_messages, which needs an adapter that serves it as an external metric. keda: a ScaledObject, which needs KEDA.',
    ),
  min: z.int().min(0).max(1000).default(1).describe('Fewest pods; 0 with builtin only.'),
  max: z.int().min(1).max(1000).describe('Most pods.'),
  targetBacklogPerPod: z.int().min(1).max(10_000_000).default(1000).describe('Messages that may be waiting for each pod.'),
});
type Autoscaling = z.output<typeof autoscaling>;

const egress = z.strictObject({
  proxySecretRef: secretKeyRef
    .optional()
    .describe('URL of the CONNECT proxy with a fixed address, through which destinations with useStaticIp are reached.'),
  allowedCidrs: z
    .array(cidr)
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .optional()
    .describe('Networks that are not public and that deliveries of every organization may reach.'),
  allowedHosts: z
    .array(hostPattern)
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .optional()
    .describe(
      'Host patterns, such as *.shop.svc.cluster.local, that deliveries of every organization may reach although they are not public.',
    ),
});

const spec = z.strictObject({
  image: text(1, 512)
    .regex(/^\S+$/, 'must have no blanks')
    .optional()
    .describe('Image of the workers; that of the controller when absent.'),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).optional().describe('When the image is pulled.'),
  imagePullSecrets: z
    .array(objectInNamespace)
    .max(8)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .optional()
    .describe('Secrets by which the image is pulled; those of the controller when absent.'),
  replicas: z.int().min(0).max(1000).default(2).describe('How many pods; ignored while autoscaling is set.'),
  autoscaling: autoscaling.optional().describe('Scales the pool by its backlog.'),
  resources: resourceRequirements.optional().describe('Resources of each pod; when absent 100m cores and 192Mi, at most 768Mi.'),
  concurrency: z.int().min(1).max(10_000).optional().describe('Delivery attempts under way at the same time in one pod.'),
  terminationGracePeriodSeconds: z
    .int()
    .min(15)
    .max(3600)
    .default(35)
    .describe('Time in which a terminating pod may finish attempts under way; 10 seconds of it are for the shutdown itself.'),
  redis: z
    .strictObject({
      secretRef: objectInNamespace
        .optional()
        .describe('Secret whose keys are environment variables, such as POSTHORN_REDIS_URL, that override those of the controller.'),
    })
    .optional()
    .describe('How the workers reach Redis; as the controller does when absent. All pools share one Redis.'),
  egress: egress.optional().describe('Where deliveries of this pool may go beyond what the installation allows.'),
  networkPolicy: z
    .strictObject({
      enabled: z.boolean().default(true).describe('Whether a NetworkPolicy confines the pods.'),
    })
    .optional()
    .describe('The NetworkPolicy lets pods reach Redis, DNS, public addresses and the networks that are allowed.'),
  serviceAccount: z
    .strictObject({
      annotations: annotations.optional().describe('Annotations by which a cloud gives the pods an identity.'),
    })
    .optional()
    .describe('The ServiceAccount of the pods. It has no rights in Kubernetes, and its token is not mounted.'),
  podTemplate: podTemplate.optional().describe('Further settings of the pods.'),
});

const rules: readonly Rule[] = [
  {
    at: 'autoscaling',
    cel: 'self.min <= self.max',
    message: 'must be at most max',
    fieldPath: '.min',
    check: ({ min, max }: Autoscaling) => min <= max,
  },
  {
    at: 'autoscaling',
    cel: "self.min > 0 || self.mode == 'builtin'",
    message: 'must be at least 1 unless mode is builtin',
    fieldPath: '.min',
    check: ({ min, mode }: Autoscaling) => min > 0 || mode === 'builtin',
  },
  cidrRule('egress.allowedCidrs'),
  {
    at: 'podTemplate.env[]',
    cel: '!(has(self.value) && has(self.valueFrom))',
    message: 'must be left out where valueFrom is given',
    fieldPath: '.value',
    check: ({ value, valueFrom }: { value?: string; valueFrom?: object }) => value === undefined || valueFrom === undefined,
  },
  {
    at: 'podTemplate.volumes[]',
    cel: 'has(self.configMap) != has(self.secret)',
    message: 'must have one of configMap and secret',
    check: ({ configMap, secret }: { configMap?: object; secret?: object }) => (configMap === undefined) !== (secret === undefined),
  },
  {
    at: 'podTemplate',
    cel: '!has(self.volumeMounts) || self.volumeMounts.all(mount, has(self.volumes) && self.volumes.exists(each, each.name == mount.name))',
    message: 'must each name one of volumes',
    fieldPath: '.volumeMounts',
    check: ({ volumes = [], volumeMounts = [] }: { volumes?: readonly { name: string }[]; volumeMounts?: readonly { name: string }[] }) =>
      volumeMounts.every(({ name }) => volumes.some((each) => each.name === name)),
  },
  {
    at: 'podTemplate.env[].valueFrom',
    cel: 'has(self.secretKeyRef) != has(self.configMapKeyRef)',
    message: 'must have one of secretKeyRef and configMapKeyRef',
    check: ({ secretKeyRef: secret, configMapKeyRef: configMap }: { secretKeyRef?: object; configMapKeyRef?: object }) =>
      (secret === undefined) !== (configMap === undefined),
  },
];

export const deliveryPool = defineKind({
  kind: 'DeliveryPool',
  plural: 'deliverypools',
  singular: 'deliverypool',
  shortName: 'dpool',
  scope: 'Namespaced',
  description: 'Workers that the controller runs and scales, in its own namespace. Standalone has none.',
  idPrefix: '',
  noun: 'delivery pool',
  recordKind: null,
  world: 'cluster',
  isServed: false,
  workers: 2,
  isForAdmins: true,
  spec,
  status: z.strictObject({
    observedGeneration: commonStatus.observedGeneration,
    conditions: commonStatus.conditions.describe(
      'Accepted, Available, Progressing and their conjunction Ready; Autoscaling while an autoscaler decides the number of pods.',
    ),
    replicas: z.int().min(0).optional().describe('Pods that are there.'),
    readyReplicas: z.int().min(0).optional().describe('Pods that are ready.'),
    desiredReplicas: z.int().min(0).optional().describe('Pods that are wanted now.'),
    selector: text(0, 1024).optional().describe('Label selector of the pods.'),
    backlog: z
      .int()
      .min(0)
      .optional()
      .describe(
        'Messages that wait for a worker, those that wait for their next attempt left out, and organizations whose cron jobs or archives wait for one.',
      ),
    oldestMessageAgeSeconds: z.int().min(0).optional().describe('For how long the oldest of them has been ready.'),
  }),
  rules,
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
  printerColumns: [
    ...readyColumns,
    { name: 'Pods', type: 'integer', jsonPath: '.status.readyReplicas' },
    { name: 'Desired', type: 'integer', jsonPath: '.status.desiredReplicas' },
    { name: 'Backlog', type: 'integer', jsonPath: '.status.backlog' },
    { name: 'Oldest', type: 'integer', jsonPath: '.status.oldestMessageAgeSeconds', priority: 1 },
    { name: 'Image', type: 'string', jsonPath: '.spec.image', priority: 1 },
    ageColumn,
  ],
});
