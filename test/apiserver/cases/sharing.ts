import type { SharedKind } from '../../../src/resources/sharing.ts';
import { many, specCases, text, type ValidationCase } from './case.ts';

/** What organizations share, and adopt, of a kind; `content`: one of its own, of which `field` is the first part. */
export function sharingCases(kind: SharedKind, content: Record<string, unknown>, field: string): ValidationCase[] {
  const own = specCases(kind, content);
  const other = specCases(kind, { sharedFrom: { organization: 'acme', name: 'shared' } });
  return [
    own.valid('shared with an organization', { sharedWith: ['globex'] }),
    own.valid('shared with nobody', { sharedWith: [] }),
    own.valid('shared with 100 organizations', { sharedWith: many(100, (n) => `org-${n}`) }),
    own.invalid('shared with 101 organizations', { sharedWith: many(101, (n) => `org-${n}`) }, 'spec.sharedWith'),
    own.invalid('shared twice with an organization', { sharedWith: ['globex', 'globex'] }, 'spec.sharedWith[1]'),
    own.invalid('shared with all', { sharedWith: ['*'] }, 'spec.sharedWith[0]'),
    own.invalid('shared with a name in upper case', { sharedWith: ['Globex'] }, 'spec.sharedWith[0]'),
    own.invalid('shared with a name of 64 characters', { sharedWith: [text(64)] }, 'spec.sharedWith[0]'),
    own.invalid('its own content and that of another', { sharedFrom: { organization: 'acme', name: 'shared' } }, field),
    other.valid('that of another organization', {}),
    other.valid('that of another organization, shared with nobody', { sharedWith: [] }),
    other.invalid('that of another organization, shared on', { sharedWith: ['globex'] }, 'spec.sharedWith'),
    other.invalid('that of an organization without a name', { sharedFrom: { name: 'shared' } }, 'spec.sharedFrom.organization'),
    other.invalid(
      'that of an organization without the name of an object',
      { sharedFrom: { organization: 'acme' } },
      'spec.sharedFrom.name',
    ),
    other.invalid(
      'that of a namespace',
      { sharedFrom: { namespace: 'acme', organization: 'acme', name: 'a' } },
      'spec.sharedFrom.namespace',
    ),
    other.invalid('that of all organizations', { sharedFrom: { organization: '*', name: 'shared' } }, 'spec.sharedFrom.organization'),
    specCases(kind, {}).invalid('no content', {}, field),
  ];
}
