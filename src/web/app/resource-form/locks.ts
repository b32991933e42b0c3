import type { FormField, FormNode } from '../../api/form-schema.ts';
import type { Manifest } from '../manifest/manifest-view.tsx';
import { type Body, fieldsIn, objectIn, withMember } from './form-body.ts';

/** What of a resource others than the API own; null: it has no manifest, or is not there yet. */
export type Owned = Pick<Manifest, 'owners' | 'isLocked'> | null;

export interface Lock {
  managers: string[];
  /** False: others may be added to what is owned. */
  isWhole: boolean;
}

const listed: readonly FormNode['kind'][] = ['list', 'numbers', 'map', 'choices', 'references', 'objects'];
const containers: readonly FormNode['kind'][] = ['object', 'branches'];

/** All of a part that a lock is on. */
export function ownedBy({ managers }: Lock): Owned {
  return { owners: [{ path: '', pointer: '', field: null, managers }], isLocked: true };
}

/** Who owns the field of a form; null: the API does. */
export function lockOf(owned: Owned, path: string, { kind }: FormNode): Lock | null {
  if (owned === null) return null;
  const { owners, isLocked } = owned;
  if (isLocked) return { managers: namesIn(owners), isWhole: true };
  const around = owners.filter(({ field }) => field !== null && (field === path || path.startsWith(`${field}.`)));
  // An item of a list has an owner of its own.
  const whole = around.filter((owner) => !owner.path.includes('['));
  if (whole.length > 0) return { managers: namesIn(whole), isWhole: true };
  if (containers.includes(kind)) return null;
  const within = owners.filter(({ field }) => field?.startsWith(`${path}.`) === true);
  const parts = [...around, ...within];
  return parts.length === 0 ? null : { managers: namesIn(parts), isWhole: !listed.includes(kind) };
}

/** The body with what is locked as it began. */
export function withoutLocked(fields: readonly FormField[], owned: Owned, start: Body, body: Body): Body {
  const lockedBack = (within: readonly FormField[], began: Body, typed: Body, path: string): Body =>
    within.reduce(
      (all, { name, node }) => (lockOf(owned, `${path}${name}`, node)?.isWhole === true ? withMember(all, name, began[name]) : all),
      typed,
    );
  const back = lockedBack(fields, start, body, '');
  // The restored body decides which fields a branch has.
  const whole = { fields, body: back };
  const deep = (within: readonly FormField[], began: Body, typed: Body, path: string): Body => {
    let all = lockedBack(within, began, typed, path);
    for (const field of within) {
      const { name, node } = field;
      if (!containers.includes(node.kind)) continue;
      const inner = deep(fieldsIn(field, whole), objectIn(began[name]), objectIn(all[name]), `${path}${name}.`);
      if (all[name] !== undefined || Object.keys(inner).length > 0) all = withMember(all, name, inner);
    }
    return all;
  };
  return deep(fields, start, back, '');
}

function namesIn(owners: Manifest['owners']): string[] {
  return [...new Set(owners.flatMap(({ managers }) => managers))];
}
