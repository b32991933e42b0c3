import type { ReactElement } from 'react';

/** How much of `total` is done, by kind. */
export function Progress({
  label,
  total,
  parts,
}: {
  label: string;
  total: number;
  parts: readonly { fill: string; value: number }[];
}): ReactElement {
  const done = parts.reduce((sum, { value }) => sum + value, 0);
  const scale = 1000 / Math.max(1, total, done);
  return (
    <div
      className="progress"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={Math.max(total, done)}
      aria-valuenow={done}
    >
      <svg viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
        <rect width="1000" height="8" className="f-sunken" />
        {parts.map(({ fill, value }, index) => (
          <rect
            key={fill}
            x={parts.slice(0, index).reduce((sum, part) => sum + part.value, 0) * scale}
            width={value * scale}
            height="8"
            className={fill}
          />
        ))}
      </svg>
    </div>
  );
}
