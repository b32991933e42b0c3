import type { ReactElement } from 'react';

export interface DialProps {
  label: string;
  /** From 0 to 1. */
  share: number;
  text: string;
  /** Class of its stroke. */
  stroke: string;
}

const circumference = 2 * Math.PI * 40;

/** What is left of a length of time. */
export function Dial({ label, share, text, stroke }: DialProps): ReactElement {
  return (
    <svg className="dial" viewBox="0 0 96 96" role="img" aria-label={label}>
      <circle cx="48" cy="48" r="40" fill="none" className="s-grid" strokeWidth="7" />
      <circle
        cx="48"
        cy="48"
        r="40"
        fill="none"
        className={stroke}
        strokeWidth="7"
        strokeDasharray={`${share * circumference} ${circumference}`}
        transform="rotate(-90 48 48)"
      />
      <text x="48" y="55" textAnchor="middle">
        {text}
      </text>
    </svg>
  );
}
