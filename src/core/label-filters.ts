/** By label key: the required value of the label, or a list of accepted values. */
export type LabelFilters = Readonly<Record<string, string | readonly string[]>>;
export type LabelFilterMode = 'all' | 'any';

/**
 * Whether the labels of an event meet the filters of a subscription: all of them, or any. Without filters every
 * event does. Labels that are numbers or booleans are compared as JSON writes them.
 */
export function matchesLabels(filters: LabelFilters, mode: LabelFilterMode, labels: Readonly<Record<string, unknown>>): boolean {
  const entries = Object.entries(filters);
  if (entries.length === 0) return true;
  const isMet = ([key, wanted]: Entry): boolean => isLabelMet(wanted, labels, key);
  return mode === 'all' ? entries.every(isMet) : entries.some(isMet);
}

/** A label filter that an event does not meet. `actual` null: the event has no such label. */
export interface UnmetLabel {
  label: string;
  expected: string | readonly string[];
  actual: string | null;
}

/** Returns why `matchesLabels` is false: the first filter that is not met, or with the mode `any` all of them. Empty: the labels match. */
export function unmetLabels(filters: LabelFilters, mode: LabelFilterMode, labels: Readonly<Record<string, unknown>>): UnmetLabel[] {
  if (matchesLabels(filters, mode, labels)) return [];
  const unmet = Object.entries(filters).filter(([key, wanted]) => !isLabelMet(wanted, labels, key));
  const reported = mode === 'all' ? unmet.slice(0, 1) : unmet;
  return reported.map(([label, expected]) => ({ label, expected, actual: ownLabel(labels, label) }));
}

type Entry = [string, string | readonly string[]];

function isLabelMet(wanted: string | readonly string[], labels: Readonly<Record<string, unknown>>, key: string): boolean {
  const label = ownLabel(labels, key);
  return label !== null && (typeof wanted === 'string' ? wanted === label : wanted.includes(label));
}

function ownLabel(labels: Readonly<Record<string, unknown>>, key: string): string | null {
  return Object.hasOwn(labels, key) ? labelText(labels[key]) : null;
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
