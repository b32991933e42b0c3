import type { ReactElement } from 'react';
import { Preformatted } from './preformatted.tsx';

export interface PayloadProps {
  value: unknown;
  encoding: 'json' | 'text' | 'base64' | null;
  isTruncated: boolean;
}

/** What was received or sent. */
export function Payload({ value, encoding, isTruncated }: PayloadProps): ReactElement {
  if (encoding === null) return <p className="muted">The payload is gone.</p>;
  const text = encoding === 'json' ? JSON.stringify(value, null, 2) : String(value);
  return (
    <div className="code-block">
      <Preformatted label="Payload">
        <code>{text}</code>
      </Preformatted>
      {isTruncated ? <p className="small muted">This is the beginning.</p> : null}
    </div>
  );
}
