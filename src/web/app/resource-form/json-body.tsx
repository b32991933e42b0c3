import { type ReactElement, useId, useState } from 'react';
import { inexactNumber, inexactWords } from './exact-json.ts';
import type { Body } from './form-body.ts';

export interface JsonBodyProps {
  body: Body;
  onChange: (body: Body) => void;
  /** Whether the text is an object in JSON; while it is not, the form keeps what it has. */
  onWrong: (isWrong: boolean) => void;
}

/** The body of the request as text. */
export function JsonBody({ body, onChange, onWrong }: JsonBodyProps): ReactElement {
  const id = useId();
  const [text, setText] = useState(() => JSON.stringify(body, null, 2));
  const [error, setError] = useState<string | null>(null);
  const changed = (next: string): void => {
    setText(next);
    const read = readObject(next);
    const isWrong = typeof read === 'string';
    setError(isWrong ? read : null);
    onWrong(isWrong);
    if (!isWrong) onChange(read);
  };
  return (
    <div className="field">
      <label htmlFor={id}>Body of the request</label>
      <textarea
        id={id}
        className="input is-mono"
        rows={18}
        spellCheck={false}
        aria-invalid={error !== null}
        aria-describedby={`${id}-error`}
        value={text}
        onChange={({ target }) => changed(target.value)}
      />
      <span className="error" id={`${id}-error`} role="status">
        {error}
      </span>
    </div>
  );
}

/** The object, or why the text is none that can be sent. */
function readObject(text: string): Body | string {
  try {
    const value: unknown = JSON.parse(text);
    const inexact = inexactNumber(text);
    if (inexact !== null) return inexactWords(inexact);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : 'The body has to be an object.';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
