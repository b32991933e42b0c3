import { type ReactElement, useEffect, useMemo, useState } from 'react';
import { CopyButton } from './copy.tsx';
import { Find, useFind } from './find.tsx';
import { formPairs } from './form-pairs.ts';
import { bytes as amount, count, percent } from './format.ts';
import { hexLine, hexLineCount } from './hex-lines.ts';
import { inTimeSlices } from './in-time-slices.ts';
import { type JsonLine, jsonLines } from './json-lines.ts';
import { JsonTree } from './json-tree.tsx';
import { type Span, textLines } from './text-lines.ts';
import { VirtualLines } from './virtual-lines.tsx';
import { indentedXml } from './xml-text.ts';

export interface PayloadProps {
  /** What was received or sent: its text, or its bytes. */
  source: { text: string } | { bytes: Uint8Array };
  contentType?: string | null;
  /** What paths in it begin with. */
  root?: string;
  /** `source` is only the beginning. */
  isTruncated?: boolean;
  /** Reads the rest. */
  onReadAll?: () => void;
}

type View = 'tree' | 'form' | 'text' | 'hex';
const words: Record<View, string> = { tree: 'Tree', form: 'Fields', text: 'Text', hex: 'Hex' };

/** What the text is, besides text. */
type Reading = { kind: 'json'; lines: JsonLine[] } | { kind: 'form' } | { kind: 'xml'; indented: string } | { kind: 'text' };

/** A payload as a tree, as text or as bytes. Nothing of it is parsed to values, so it reads as it was written. */
export function Payload({ source, contentType = null, root = 'payload', isTruncated = false, onReadAll }: PayloadProps): ReactElement {
  const text = useMemo(() => ('text' in source ? source.text : decoded(source.bytes, contentType)), [source, contentType]);
  const size = 'text' in source ? source.text.length : source.bytes.length;
  return (
    <div className="code-block payload">
      {size === 0 ? (
        <p className="payload-bar muted">The payload is empty.</p>
      ) : text === null ? (
        <Views views={['hex']} view="hex" setView={() => undefined}>
          <HexView source={source} />
        </Views>
      ) : (
        <Readable text={text} source={source} contentType={contentType ?? ''} root={root} isTruncated={isTruncated} />
      )}
      {isTruncated ? (
        <div className="payload-bar">
          <span className="small muted grow">These are the first {amount(size)}.</span>
          {onReadAll === undefined ? null : (
            <button type="button" className="btn is-sm" onClick={onReadAll}>
              Read all of it
            </button>
          )}
        </div>
      ) : null}
    </div>
  );
}

interface ReadableProps {
  text: string;
  source: PayloadProps['source'];
  contentType: string;
  root: string;
  isTruncated: boolean;
}

function Readable({ text, source, contentType, root, isTruncated }: ReadableProps): ReactElement {
  const { reading, done } = useReading(text, contentType, isTruncated);
  const [chosen, setChosen] = useState<View | null>(null);
  if (reading === null)
    return (
      <p className="payload-bar muted" role="status">
        Reading the payload, {percent(done)}…
      </p>
    );
  const first: View = reading.kind === 'json' ? 'tree' : reading.kind === 'form' ? 'form' : 'text';
  const views: View[] = first === 'text' ? ['text', 'hex'] : [first, 'text', 'hex'];
  const view = chosen ?? first;
  return (
    <Views views={views} view={view} setView={setChosen} copy={text}>
      {view === 'tree' && reading.kind === 'json' ? <JsonTree text={text} lines={reading.lines} root={root} /> : null}
      {view === 'form' ? <FormView text={text} /> : null}
      {view === 'text' ? <TextView text={reading.kind === 'xml' ? reading.indented : text} /> : null}
      {view === 'hex' ? <HexView source={source} /> : null}
    </Views>
  );
}

interface ViewsProps {
  views: readonly View[];
  view: View;
  setView: (view: View) => void;
  copy?: string;
  children: React.ReactNode;
}

function Views({ views, view, setView, copy, children }: ViewsProps): ReactElement {
  return (
    <>
      <div className="payload-bar">
        <div className="segments is-sm" role="group" aria-label="View">
          {views.map((each) => (
            <button key={each} type="button" aria-pressed={each === view} onClick={() => setView(each)}>
              {words[each]}
            </button>
          ))}
        </div>
        <span className="spacer" />
        {copy === undefined ? null : <CopyButton text={copy} label="Copy all" isQuiet />}
      </div>
      {children}
    </>
  );
}

function TextView({ text }: { text: string }): ReactElement {
  const lines = useMemo((): Span[] => textLines(text), [text]);
  const [shown, setShown] = useState<number | null>(null);
  const find = useFind(text, lines, setShown);
  return (
    <>
      <Find find={find} />
      <VirtualLines
        label="Payload as text"
        count={lines.length}
        shown={shown}
        line={(index) => {
          const { start, end } = lines[index] ?? { start: 0, end: 0 };
          return (
            <div key={index} className={`l${index === shown ? ' is-hit' : ''}`}>
              {text.slice(start, end) || ' '}
            </div>
          );
        }}
      />
    </>
  );
}

function HexView({ source }: { source: PayloadProps['source'] }): ReactElement {
  const shown = useMemo(() => ('text' in source ? new TextEncoder().encode(source.text) : source.bytes), [source]);
  return (
    <VirtualLines
      label="Payload as bytes"
      count={hexLineCount(shown)}
      line={(index) => {
        const { offset, hex, ascii } = hexLine(shown, index);
        return (
          <div key={index} className="l">
            <span className="tc">{offset}</span>
            {`  ${hex}  `}
            <span className="ts">{ascii}</span>
          </div>
        );
      }}
    />
  );
}

const maxPairs = 1000;

function FormView({ text }: { text: string }): ReactElement {
  const pairs = useMemo(() => formPairs(text), [text]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="lines" tabIndex={0} aria-label="Payload as fields">
      <dl className="kv is-tight">
        {pairs.slice(0, maxPairs).map(([name, value], at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: fields may have the same name, and never move
          <Pair key={at} name={name} value={value} />
        ))}
      </dl>
      {pairs.length > maxPairs ? <p className="small muted">{count(pairs.length - maxPairs)} more fields are in the text.</p> : null}
    </section>
  );
}

function Pair({ name, value }: { name: string; value: string }): ReactElement {
  return (
    <>
      <dt className="tk">{name}</dt>
      <dd className="ts">{value === '' ? <span className="dim">–</span> : value}</dd>
    </>
  );
}

/** The analysis of a text, in slices; null until then. */
function useReading(text: string, contentType: string, isTruncated: boolean): { reading: Reading | null; done: number } {
  const [found, setFound] = useState<{ of: string; reading: Reading } | null>(null);
  const [done, setDone] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const onProgress = (at: number): void => setDone(at / text.length);
    read(text, contentType, isTruncated, { signal: stop.signal, onProgress }).then(
      (reading) => setFound({ of: text, reading }),
      () => undefined,
    );
    return () => stop.abort(new DOMException('The view is gone', 'AbortError'));
  }, [text, contentType, isTruncated]);
  // The analysis of another text does not apply to this one.
  return { reading: found !== null && found.of === text ? found.reading : null, done };
}

async function read(text: string, contentType: string, isTruncated: boolean, turns: Parameters<typeof inTimeSlices>[1]): Promise<Reading> {
  if (/json/i.test(contentType) || /^\s*[{[]/.test(text)) {
    const { lines, faultAt } = await inTimeSlices(jsonLines(text), turns);
    if (faultAt === null || (isTruncated && lines.length > 1)) return { kind: 'json', lines };
  }
  if (/x-www-form-urlencoded/i.test(contentType)) return { kind: 'form' };
  if (/\bxml\b/i.test(contentType) || text.startsWith('<?xml'))
    return { kind: 'xml', indented: await inTimeSlices(indentedXml(text), turns) };
  return { kind: 'text' };
}

/** null: the bytes are no text in the character set that the type names, or in UTF-8. */
function decoded(bytes: Uint8Array, contentType: string | null): string | null {
  const charset = /charset=["']?([\w-]+)/i.exec(contentType ?? '')?.[1] ?? 'utf-8';
  try {
    const text = new TextDecoder(charset, { fatal: true }).decode(bytes);
    return text.includes('\u0000') ? null : text;
  } catch {
    return null;
  }
}
