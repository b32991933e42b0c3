import { type Document, isMap, isScalar, isSeq, type LineCounter } from 'yaml';
import type { ReadDocument, ReadText } from '../../runtime/manifests/parse.ts';
import { offsetOf, placeAt } from '../../runtime/manifests/places.ts';
import type { LintFinding } from './finding.ts';

type Found = Omit<LintFinding, 'file'>;

/**
 * Returns what is wrong with a file apart from its objects: what cannot be read, empty documents, and an end that is missing. A file that is cut between two
 * fields looks like a shorter one.
 */
export function fileFindings(text: string, { documents, problems, lines }: ReadText): Found[] {
  const unreadable = [...problems, ...documents.flatMap(({ problem }) => problem ?? [])];
  const broken = unreadable.map(({ message, place }): Found => ({ severity: 'error', ...place, reason: 'Unreadable', message }));
  if (broken.length === 0 && documents.length === 0) return [withoutDocument(text, lines)];
  return [
    ...broken,
    ...documents.flatMap((each) => [...emptyDocument(each, lines), ...unclearYaml(each, lines)]),
    ...truncatedEnd(text, documents.at(-1), lines),
  ];
}

function withoutDocument(text: string, lines: LineCounter): Found {
  const place = placeAt(lines, 0);
  if (text.trim() === '') return { severity: 'error', ...place, reason: 'EmptyFile', message: 'the file is empty' };
  return { severity: 'warning', ...place, reason: 'EmptyDocument', message: 'the file has nothing but comments' };
}

function emptyDocument({ document, problem }: ReadDocument, lines: LineCounter): Found[] {
  const { contents } = document;
  if (problem !== null || (contents !== null && !(isScalar(contents) && contents.value === null))) return [];
  const place = placeAt(lines, offsetOf(document, ''));
  return [{ severity: 'warning', ...place, reason: 'EmptyDocument', message: 'the document is empty' }];
}

function unclearYaml({ document, objects }: ReadDocument, lines: LineCounter): Found[] {
  if (objects.length === 0) return [];
  return document.warnings.map(({ message, pos }) => ({
    severity: 'warning',
    ...placeAt(lines, pos[0]),
    reason: 'UnclearYaml',
    message: message.split('\n')[0] ?? '',
  }));
}

/** Objects behind the end may have been ours, whatever the last one is. */
function truncatedEnd(text: string, last: ReadDocument | undefined, lines: LineCounter): Found[] {
  if (last === undefined || last.problem !== null || hasEnd(last.document)) return [];
  const offset = last.objects.length === 0 ? null : valuelessEnd(last.document);
  if (offset !== null) {
    const message = 'the last field of the file has no value: the file seems to be cut off';
    return [{ severity: 'error', ...placeAt(lines, offset), reason: 'Truncated', message }];
  }
  if (text.endsWith('\n')) return [];
  const message = 'the last line of the file has no end: the file may be cut off';
  return [{ severity: 'warning', ...placeAt(lines, text.length), reason: 'Truncated', message }];
}

/** JSON and other brackets are closed, or the document could not be read; `...` ends any document. */
function hasEnd({ contents, directives }: Document.Parsed): boolean {
  return directives.docEnd || (isMap(contents) && contents.flow === true);
}

/** The offset of the field behind which the document ends without a value; null: the last one has a value. */
function valuelessEnd({ contents }: Document.Parsed): number | null {
  let node: unknown = contents;
  let offset = 0;
  for (;;) {
    if (isMap(node)) {
      const pair = node.items.at(-1);
      if (pair === undefined) return null;
      if (isScalar(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      const item = node.items.at(-1);
      if (item === undefined) return null;
      offset = (isScalar(item) || isMap(item) || isSeq(item) ? item.range?.[0] : undefined) ?? offset;
      node = item;
    } else return node === null || (isScalar(node) && isMissing(node)) ? offset : null;
  }
}

/** Nothing is written, or the head of a text of several lines without one. */
function isMissing({ value, source = '', type }: { value: unknown; source?: string; type?: string }): boolean {
  return (value === null && source === '') || (value === '' && type?.startsWith('BLOCK') === true);
}
