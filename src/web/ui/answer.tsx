import type { ReactElement, ReactNode } from 'react';
import { Icon } from './icon.tsx';
import type { Tone } from './state.tsx';

const marks: Record<Tone, string> = { ok: 'ok', bad: 'fail', warn: 'warn', open: 'open', run: 'run', idle: 'pending' };

/** The one sentence that answers the question of a screen, a second one below it, and what to do. */
export function AnswerLine({
  tone,
  question,
  children,
  act,
}: {
  tone: Tone;
  question: string;
  children: ReactNode;
  act?: ReactNode;
}): ReactElement {
  return (
    <section className={`answer is-${tone}`} aria-label={question}>
      <Icon name={marks[tone]} size={20} className={tone === 'run' ? 'spin' : undefined} />
      <div>{children}</div>
      {act === undefined ? null : <div className="act">{act}</div>}
    </section>
  );
}
