/** What a form has of the schema of a request body; hack/lib/form-schemas.ts makes it. */
export type FormNode =
  | { kind: 'text'; isSecret?: true; isLong?: true }
  | { kind: 'number' | 'boolean' }
  | { kind: 'choice'; values: string[] }
  | { kind: 'reference'; to: ReferenceFamily }
  /** `list` has texts; `numbers` may have some, too. */
  | { kind: 'list' | 'numbers' | 'map' }
  | { kind: 'choices'; values: string[] }
  | { kind: 'references'; to: ReferenceFamily }
  | { kind: 'object'; fields: FormField[] }
  | { kind: 'objects'; fields: FormField[] }
  /** The member `on` beside it selects its fields. */
  | { kind: 'branches'; on: string; branches: Record<string, FormField[]> }
  /** Anything else: JSON. With `isObject` the value is an object. */
  | { kind: 'json'; isObject?: true };

export type ReferenceFamily =
  | 'sources'
  | 'destinations'
  | 'filters'
  | 'transforms'
  | 'schemas'
  | 'notification-channels'
  | 'webhook-applications'
  | 'webhook-endpoints'
  | 'event-types';

export interface FormField {
  name: string;
  help: string;
  node: FormNode;
  isRequired?: true;
  /** null removes it. */
  isNullable?: true;
  /** A list without which all count; the empty list is none of them. */
  isAllWithout?: true;
  /** An object that a change replaces as a whole; of the others it keeps what is not sent. */
  isReplaced?: true;
  /** Set once, when the resource is made. */
  isFixed?: true;
  /** Shown at once; the others are below further settings. */
  isMain?: true;
  default?: string | number | boolean | (string | number)[];
  /** Shown where the member `field` beside it, or of the whole body, has one of the values. */
  when?: { field: string; values: string[] };
}
