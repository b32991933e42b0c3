import { z } from 'zod';
import { defineKind } from './definition.ts';
import { commonStatus, displayName, objectName } from './fields.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';

const cidr = z.string().min(3).max(49);

export const organization = defineKind({
  kind: 'Organization',
  plural: 'organizations',
  singular: 'organization',
  shortName: 'phorg',
  scope: 'Cluster',
  description: 'A tenant: names the namespace that holds its resources, its plan, limits and egress settings.',
  idPrefix: 'org_',
  spec: z.object({
    name: displayName.optional(),
    namespace: objectName.describe('Namespace of the organization; made when it is missing. Cannot be changed.'),
    plan: z.enum(['free', 'starter', 'pro', 'business', 'enterprise']).default('enterprise'),
    limits: z
      .object({
        payloadBytes: z.int().min(1024).max(1_048_576).optional().describe('Largest accepted payload in bytes; the plan decides when absent.'),
      })
      .optional(),
    egress: z
      .object({
        allowedCidrs: z.array(cidr).max(64).meta({ 'x-kubernetes-list-type': 'set' }).optional().describe('Non-public networks that deliveries may reach, as CIDR.'),
        allowedHosts: z.array(z.string().min(1).max(253)).max(64).meta({ 'x-kubernetes-list-type': 'set' }).optional().describe('Host patterns, such as *.shop.svc.cluster.local, that deliveries may reach although they are not public.'),
      })
      .optional(),
  }),
  status: z.object({
    ...commonStatus,
    namespaceUid: z.string().max(64).optional().describe('uid of the namespace that was made or adopted.'),
  }),
  rules: [
    {
      at: '',
      transition: true,
      cel: 'self.namespace == oldSelf.namespace',
      message: 'namespace cannot be changed',
      fieldPath: '.namespace',
      check: (self, oldSelf) => self.namespace === oldSelf.namespace,
    },
  ],
  printerColumns: [
    ...readyColumns,
    { name: 'Namespace', type: 'string', jsonPath: '.spec.namespace' },
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan' },
    ageColumn,
  ],
});
