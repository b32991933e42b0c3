import { z } from 'zod';
import { operation } from '../../http/operation.ts';
import { findManifest } from './find-manifest.ts';

const event = z
  .object({
    type: z.string().describe('`Normal` or `Warning`.'),
    reason: z.string().describe('What happened, in one word.'),
    message: z.string().describe('What happened, for people.'),
    count: z.int().min(1).describe('How often it happened.'),
    firstAt: z.string().nullable().describe('When it happened first; null: the Event has no time.'),
    lastAt: z.string().nullable().describe('When it happened last; null: the Event has no time.'),
    source: z.string().describe('The component that reports it, such as `posthorn-controller`.'),
  })
  .meta({ id: 'ObjectEvent' });

export const manifestEventsOperation = operation({
  method: 'GET',
  path: '/manifests/{id}/events',
  operationId: 'listManifestEvents',
  summary: 'List the Kubernetes Events of a resource',
  description:
    'What has happened to the custom resource lately, the newest first, at most 100. A cluster keeps Events for an hour unless it is set up otherwise; standalone keeps none.',
  scope: 'read',
  answer: {
    status: 200,
    description: 'The Events.',
    schema: z.object({
      isKept: z.boolean().describe('Whether Events are kept at all. Standalone keeps none.'),
      data: z.array(event).describe('The Events.'),
    }),
  },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const { uid, namespace = call.caller.organization.namespace } = (await findManifest(call, call.params['id'] ?? '')).metadata;
    const { objectEvents } = call.services;
    return objectEvents === null ? { isKept: false, data: [] } : { isKept: true, data: await objectEvents.of({ namespace, uid }) };
  },
});
