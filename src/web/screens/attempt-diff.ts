import type { Attempt } from './attempts.tsx';
import type { DiffRow } from './line-diff.ts';

export interface DiffPart {
  title: string;
  rows: DiffRow[];
}

/** What two attempts have in common and where they differ, part by part. */
export function attemptDiff(before: Attempt, after: Attempt): DiffPart[] {
  const value = (attempt: Attempt, of: (detail: NonNullable<Attempt['detail']>) => unknown): string | null =>
    attempt.detail === undefined ? null : text(of(attempt.detail));
  const both = (name: string, of: (detail: NonNullable<Attempt['detail']>) => unknown): DiffRow =>
    row(name, value(before, of), value(after, of));
  const phase = (name: string, key: 'dnsMs' | 'connectMs' | 'tlsMs' | 'firstByteMs' | 'totalMs'): DiffRow =>
    both(name, ({ phases }) => (phases[key] === null ? null : `${phases[key]} ms`));
  return [
    {
      title: 'Response',
      rows: [
        row('status', text(before.responseStatus), text(after.responseStatus)),
        row('error', before.errorType, after.errorType),
        row('message', before.errorMessage, after.errorMessage),
        row('body', before.responseBody, after.responseBody),
        ...headerRows(before.detail?.responseHeaders ?? {}, after.detail?.responseHeaders ?? {}),
      ],
    },
    {
      title: 'Connection',
      rows: [
        both('peer address', ({ peerAddress }) => peerAddress),
        both('reused connection', ({ reusedConnection }) => (reusedConnection ? 'yes' : 'no')),
      ],
    },
    {
      title: 'Request',
      rows: [
        row('body', before.payloadForm, after.payloadForm),
        row('signatures', before.signatureScheme ?? 'none', after.signatureScheme ?? 'none'),
        both('body bytes', ({ requestBytes }) => requestBytes),
        ...headerRows(before.detail?.requestHeaders ?? {}, after.detail?.requestHeaders ?? {}),
      ],
    },
    {
      title: 'Time',
      rows: [
        phase('DNS', 'dnsMs'),
        phase('connect', 'connectMs'),
        phase('TLS', 'tlsMs'),
        phase('first byte', 'firstByteMs'),
        phase('total', 'totalMs'),
      ],
    },
  ].map(({ title, rows }) => ({ title, rows: rows.filter((each) => each.before !== null || each.after !== null) }));
}

function headerRows(before: Record<string, string>, after: Record<string, string>): DiffRow[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.map((name) => row(name, before[name] ?? null, after[name] ?? null));
}

function row(name: string, before: string | null, after: string | null): DiffRow {
  return { name, before, after, isEqual: before === after };
}

function text(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

/** A value as what both have, what only this one has, and what both have again. */
export function differing(value: string, other: string): [same: string, changed: string, same: string] {
  let start = 0;
  const shorter = Math.min(value.length, other.length);
  while (start < shorter && value[start] === other[start]) start += 1;
  let end = 0;
  while (end < shorter - start && value[value.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  return [value.slice(0, start), value.slice(start, value.length - end), value.slice(value.length - end)];
}
