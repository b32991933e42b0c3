import { z } from 'zod';
import type { Rule } from './definition.ts';
import { objectName } from './fields.ts';

/** With which an object may be shared. */
export const maxOrganizations = 100;

const sharedWith = z
  .array(objectName)
  .max(maxOrganizations)
  .meta({ 'x-kubernetes-list-type': 'set' })
  .describe('Names of the Organizations that may take it over by sharedFrom. One that is removed loses it.');

/** Fields of the spec of a kind whose objects an organization may share with others. */
export const sharingFields = {
  sharedWith: sharedWith.optional(),
  sharedFrom: z
    .strictObject({
      organization: objectName.describe('Name of the Organization that shares it.'),
      name: objectName.describe('Name of the object there, of the same kind.'),
    })
    .optional()
    .describe('The object of another organization that provides the content. It names the organization of this one in sharedWith.'),
};

export interface Sharing {
  sharedWith?: string[] | undefined;
  sharedFrom?: { organization: string; name: string } | undefined;
}

/** An object has a content of its own, in `field`, or that of another organization, and only the former can be shared: there is no chain and no cycle. */
export function sharingRules(field: string): Rule[] {
  return [
    {
      at: '',
      cel: `has(self.${field}) != has(self.sharedFrom)`,
      message: `give ${field} or sharedFrom, one of them`,
      fieldPath: `.${field}`,
      check: (self: Sharing & Record<string, unknown>) => (self[field] !== undefined) !== (self.sharedFrom !== undefined),
    },
    {
      at: '',
      cel: '!has(self.sharedFrom) || !has(self.sharedWith) || self.sharedWith.size() == 0',
      message: 'what another organization shares cannot be shared on',
      fieldPath: '.sharedWith',
      check: ({ sharedFrom, sharedWith: organizations = [] }: Sharing) => sharedFrom === undefined || organizations.length === 0,
    },
  ];
}
