/** Label key → the value that an event's label must have, or those of which it must have one. */
export type LabelFilters = Readonly<Record<string, string | readonly string[]>>;
export type LabelFilterMode = 'all' | 'any';

/**
 * Whether the labels of an event meet the filters of a subscription: all of them, or any. Without filters every
 * event does. Labels that are numbers or booleans are compared as JSON writes them.
 */
export function matchesLabels(filters: LabelFilters, mode: LabelFilterMode, labels: Readonly<Record<string, unknown>>): boolean {
  const entries = Object.entries(filters);
  if (entries.length === 0) return true;
  const isMet = ([key, wanted]: [string, string | readonly string[]]): boolean => {
    const label = Object.hasOwn(labels, key) ? labelText(labels[key]) : null;
    return label !== null && (typeof wanted === 'string' ? wanted === label : wanted.includes(label));
  };
  return mode === 'all' ? entries.every(isMet) : entries.some(isMet);
}

function labelText(label: unknown): string | null {
  switch (typeof label) {
    case 'string':
      return label;
    case 'number':
    case 'boolean':
      return String(label);
    default:
      return null;
  }
}
