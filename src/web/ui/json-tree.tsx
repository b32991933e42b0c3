import { type KeyboardEvent, type ReactElement, useId, useMemo, useState } from 'react';
import { CopyButton } from './copy.tsx';
import { Find, useFind } from './find.tsx';
import { count } from './format.ts';
import { collapsedAtFirst, copiedValue, type JsonLine, opened, pathOf, visibleLines } from './json-lines.ts';
import type { Span } from './text-lines.ts';
import { VirtualLines } from './virtual-lines.tsx';

const longest = 2000;

/** JSON as it was written, in lines whose branches open and close. */
export function JsonTree({ text, lines, root }: { text: string; lines: readonly JsonLine[]; root: string }): ReactElement {
  const id = useId();
  const [collapsed, setCollapsed] = useState<ReadonlySet<number>>(() => collapsedAtFirst(lines));
  const [active, setActive] = useState(0);
  const [spans] = useState(() => lines.map((line): Span => ownSpan(line)));
  const goTo = (at: number): void => {
    setCollapsed((before) => opened(lines, before, at));
    setActive(at);
  };
  const find = useFind(text, spans, goTo);
  const [visible, position] = useVisible(lines, collapsed, active);
  const line = lines[active];

  const toggle = (at: number, isCollapsed = !collapsed.has(at)): void => {
    const next = new Set(collapsed);
    if (isCollapsed) next.add(at);
    else next.delete(at);
    setCollapsed(next);
  };
  const move = (to: number, step: 1 | -1): void => {
    for (let at = to; at >= 0 && at < visible.length; at += step) {
      const next = visible[at];
      if (next === undefined || lines[next]?.kind === 'close') continue;
      setActive(next);
      return;
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    const isOpen = line?.kind === 'open' && !collapsed.has(active);
    const acts = new Map<string, () => void>([
      ['ArrowDown', () => move(position + 1, 1)],
      ['ArrowUp', () => move(position - 1, -1)],
      ['Home', () => move(0, 1)],
      ['End', () => move(visible.length - 1, -1)],
      ['PageDown', () => move(Math.min(position + 20, visible.length - 1), 1)],
      ['PageUp', () => move(Math.max(position - 20, 0), -1)],
      ['ArrowRight', () => (line?.kind === 'open' ? (isOpen ? move(position + 1, 1) : toggle(active, false)) : undefined)],
      ['ArrowLeft', () => (isOpen ? toggle(active, true) : line !== undefined && line.parent >= 0 ? setActive(line.parent) : undefined)],
      ['Enter', () => (line?.kind === 'open' ? toggle(active) : undefined)],
      [' ', () => (line?.kind === 'open' ? toggle(active) : undefined)],
    ]);
    const act = acts.get(event.key);
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    // `j`, `k` and Enter of the list are not meant.
    event.stopPropagation();
    act();
  };
  return (
    <>
      <Find find={find} />
      <div className="payload-bar">
        <code className="grow">{line === undefined ? '' : pathOf(text, lines, active, root)}</code>
        <CopyButton text={() => pathOf(text, lines, active, root)} label="Copy path" isQuiet />
        <CopyButton text={() => (line === undefined ? '' : copiedValue(text, line))} label="Copy value" isQuiet />
      </div>
      <VirtualLines
        label="Payload as a tree"
        role="tree"
        count={visible.length}
        shown={position}
        active={`${id}-${active}`}
        onKeyDown={pressed}
        line={(index) => {
          const at = visible[index] ?? 0;
          return (
            <TreeLine
              key={at}
              id={`${id}-${at}`}
              text={text}
              line={lines[at]}
              closing={lines[lines[at]?.end ?? -1]}
              isCollapsed={collapsed.has(at)}
              isActive={at === active}
              onClick={() => {
                const clicked = lines[at];
                if (clicked === undefined) return;
                setActive(clicked.kind === 'close' ? openingOf(lines, at) : at);
                if (clicked.kind === 'open' && clicked.members > 0) toggle(at);
              }}
            />
          );
        }}
      />
    </>
  );
}

interface TreeLineProps {
  id: string;
  text: string;
  line: JsonLine | undefined;
  closing: JsonLine | undefined;
  isCollapsed: boolean;
  isActive: boolean;
  onClick: () => void;
}

function TreeLine({ id, text, line, closing, isCollapsed, isActive, onClick }: TreeLineProps): ReactElement | null {
  if (line === undefined) return null;
  const indent = '  '.repeat(line.depth);
  const className = `l${isActive ? ' is-hit' : ''}`;
  if (line.kind === 'close')
    return (
      <div className={className} role="presentation">
        {indent}
        <span className="tp">
          {text.slice(line.valueStart, line.valueEnd)}
          {line.hasComma ? ',' : ''}
        </span>
      </div>
    );
  const isBranch = line.kind === 'open' && line.members > 0;
  const isShort = line.kind === 'open' && (isCollapsed || line.members === 0);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus, and names its active line
    <div
      id={id}
      className={className}
      role="treeitem"
      aria-level={line.depth + 1}
      aria-selected={isActive}
      aria-expanded={isBranch ? !isCollapsed : undefined}
      onClick={onClick}
    >
      {indent}
      {line.keyStart < 0 ? null : (
        <>
          <span className="tk">{cut(text.slice(line.keyStart, line.keyEnd))}</span>
          <span className="tp">: </span>
        </>
      )}
      {line.kind === 'value' ? <Scalar written={text.slice(line.valueStart, line.valueEnd)} /> : null}
      {line.kind === 'open' ? <span className="tp">{text[line.valueStart]}</span> : null}
      {isBranch && isCollapsed ? (
        <span className="fold">
          … {count(line.members)} {membersWord(text[line.valueStart], line.members)}
        </span>
      ) : null}
      {isShort && closing !== undefined ? <span className="tp">{text.slice(closing.valueStart, closing.valueEnd)}</span> : null}
      <span className="tp">{(isShort ? closing : line)?.hasComma === true ? ',' : ''}</span>
    </div>
  );
}

function Scalar({ written }: { written: string }): ReactElement {
  const first = written[0] ?? '';
  const className = first === '"' ? 'ts' : first === '-' || (first >= '0' && first <= '9') ? 'tn' : 'tl';
  return <span className={className}>{cut(written)}</span>;
}

function cut(written: string): string {
  return written.length <= longest ? written : `${written.slice(0, longest)}… ${count(written.length - longest)} more characters`;
}

function membersWord(opening: string | undefined, members: number): string {
  if (opening === '{') return members === 1 ? 'key' : 'keys';
  return members === 1 ? 'item' : 'items';
}

/** What a search finds in a line: its key and its value, not what it opens. */
function ownSpan(line: JsonLine): Span {
  const start = line.keyStart < 0 ? line.valueStart : line.keyStart;
  if (line.kind === 'value') return { start, end: line.valueEnd };
  return { start, end: line.kind === 'open' && line.keyEnd >= 0 ? line.keyEnd : start };
}

function openingOf(lines: readonly JsonLine[], closing: number): number {
  for (let at = closing - 1; at >= 0; at -= 1) if (lines[at]?.end === closing) return at;
  return 0;
}

function useVisible(lines: readonly JsonLine[], collapsed: ReadonlySet<number>, active: number): [visible: number[], position: number] {
  const visible = useMemo(() => visibleLines(lines, collapsed), [lines, collapsed]);
  return [visible, useMemo(() => visible.indexOf(active), [visible, active])];
}
