import { type ReactElement, type ReactNode, useId } from 'react';

interface PanelProps {
  title: string;
  /** Beside the title, such as the span of time or the order. */
  hint?: ReactNode;
  /** At the end of the head: a link, a legend or a button. */
  end?: ReactNode;
  /** The title also names it as a region, which those find who go from region to region. */
  isRegion?: boolean;
  children: ReactNode;
}

/** A heading over what belongs together. */
export function Panel({ title, hint, end, isRegion = false, children }: PanelProps): ReactElement {
  const id = useId();
  return (
    <section className="panel" aria-labelledby={isRegion ? id : undefined}>
      <header className="panel-head">
        <h2 id={isRegion ? id : undefined}>{title}</h2>
        {hint === undefined ? null : <span className="hint">{hint}</span>}
        {end === undefined ? null : (
          <>
            <span className="spacer" />
            {end}
          </>
        )}
      </header>
      {children}
    </section>
  );
}
