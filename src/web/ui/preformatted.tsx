import type { ReactElement, ReactNode } from 'react';

/** Text whose lines stay as they are. It scrolls, so the keyboard must reach it. */
export function Preformatted({ label, children }: { label: string; children: ReactNode }): ReactElement {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <pre tabIndex={0} role="region" aria-label={label}>
      {children}
    </pre>
  );
}
