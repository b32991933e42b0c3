import { z } from 'zod';
import { defaultInstallation } from '../core/default-installation.ts';
import { plans } from '../core/records.ts';
import { cidr, cidrRule } from './cidr.ts';
import { defineKind, type Rule } from './definition.ts';
import { commonStatus, displayName, objectName, reference } from './fields.ts';
import { hostPattern } from './host-pattern.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';
import { text } from './text.ts';

const limits = z.strictObject({
  payloadBytes: z
    .int()
    .min(1024)
    .max(33_554_432)
    .optional()
    .describe(
      'Largest accepted payload in bytes; the plan decides when absent. Above 1 MiB it holds for sources, up to the limit of the installation (POSTHORN_MAX_PAYLOAD_BYTES).',
    ),
  monthlyMessages: z
    .int()
    .min(1)
    .max(1_000_000_000_000)
    .optional()
    .describe('Messages that may be queued in a UTC month; the plan decides when absent.'),
  objectsPerKind: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe(
      'Resources of each kind that may be in the namespace; the plan decides when absent. Those that the REST API keeps in Redis do not count.',
    ),
});

const egress = z.strictObject({
  allowedCidrs: z
    .array(cidr)
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .optional()
    .describe('Non-public networks that deliveries may reach, as CIDR.'),
  allowedHosts: z
    .array(hostPattern)
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .optional()
    .describe('Host patterns, such as *.shop.svc.cluster.local, that deliveries may reach although they are not public.'),
});

const archive = z.strictObject({
  destinationRef: reference('Destination').describe(
    'Destination of the type s3, r2, gcs or azure_blob, in the namespace of the organization.',
  ),
});

const spec = z.strictObject({
  name: displayName.optional(),
  namespace: objectName.describe('Namespace of the organization; created when it is missing. Cannot be changed.'),
  installation: objectName
    .default(defaultInstallation)
    .describe(
      'Installation of Posthorn in this cluster that serves the organization and everything in its namespace; the others leave both alone. Cannot be changed.',
    ),
  plan: z
    .enum(plans)
    .default('enterprise')
    .describe('Decides the limits that are not set here, and what destinations and cron jobs may use: what is beyond it is suspended.'),
  limits: limits.optional().describe('Limits that replace those of the plan.'),
  egress: egress.optional().describe('Where deliveries may go beyond public addresses.'),
  deliveryPool: objectName
    .optional()
    .describe(
      'DeliveryPool whose workers deliver what the organization has, run its cron jobs and make its tests; `default` when absent. Standalone has no pools.',
    ),
  deletionPolicy: z
    .enum(['Retain', 'Delete'])
    .default('Retain')
    .describe(
      'What becomes of what the organization has when it is deleted. Retain: its namespace and resources stay, and its data for 37 days. Delete: its resources and its data go, and the namespace if Posthorn made it and nothing else is in it.',
    ),
  archive: archive
    .optional()
    .describe('Where messages that have ended are written before their retention is over. Without it they are removed then.'),
});

const rules: readonly Rule[] = [
  {
    at: 'namespace',
    transition: true,
    cel: 'self == oldSelf',
    message: 'cannot be changed; make another organization',
    check: (self: string, oldSelf: string) => self === oldSelf,
  },
  {
    at: 'installation',
    transition: true,
    cel: 'self == oldSelf',
    message: 'cannot be changed; make another organization',
    check: (self: string, oldSelf: string) => self === oldSelf,
  },
  {
    at: 'namespace',
    cel: "!self.startsWith('kube-')",
    message: 'must not be a namespace of Kubernetes itself (kube-*)',
    check: (self: string) => !self.startsWith('kube-'),
  },
  cidrRule('egress.allowedCidrs'),
];

export const organization = defineKind({
  kind: 'Organization',
  plural: 'organizations',
  singular: 'organization',
  shortName: 'phorg',
  scope: 'Cluster',
  description: 'A tenant: names the namespace that holds its resources, its plan, limits and egress settings.',
  idPrefix: 'org_',
  noun: 'organization',
  recordKind: 'organization',
  world: 'both',
  isServed: false,
  workers: 2,
  namespaceIn: ({ namespace }) => namespace,
  referrersReadSpec: true,
  hasSharedStatus: true,
  isForAdmins: true,
  spec,
  status: z.strictObject({
    ...commonStatus,
    namespaceUid: text(0, 64).optional().describe('uid of the namespace that was made or adopted.'),
  }),
  rules,
  printerColumns: [
    ...readyColumns,
    { name: 'Namespace', type: 'string', jsonPath: '.spec.namespace' },
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan' },
    { name: 'Installation', type: 'string', jsonPath: '.spec.installation', priority: 1 },
    ageColumn,
  ],
});
