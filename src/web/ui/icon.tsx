import type { ReactElement } from 'react';

/** A drawing of the sprite in index.html, with a word beside it. */
export function Icon({ name, size = 16, className }: { name: string; size?: number; className?: string }): ReactElement {
  return (
    <svg width={size} height={size} viewBox={name === 'horn' ? '0 0 24 24' : '0 0 16 16'} aria-hidden="true" className={className}>
      <use href={`#i-${name}`} />
    </svg>
  );
}
