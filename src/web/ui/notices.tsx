import type { ReactElement, ReactNode } from 'react';
import { CopyButton } from './copy.tsx';
import { Icon } from './icon.tsx';
import { Preformatted } from './preformatted.tsx';

/** Shows that a list is empty, and what to do. */
export function Empty({ title, children, command }: { title: string; children?: ReactNode; command?: string }): ReactElement {
  return (
    <div className="blank">
      <h2>{title}</h2>
      {children}
      {command === undefined ? null : <Command text={command} />}
    </div>
  );
}

/** A command to copy. */
export function Command({ text }: { text: string }): ReactElement {
  return (
    <div className="code-block">
      <Preformatted label="Command">{text}</Preformatted>
      <CopyButton text={text} label="Copy" isQuiet />
    </div>
  );
}

/** The error, its meaning, and a way to try again. */
export function Failure({ message, requestId, retry }: { message: string; requestId?: string | null; retry?: () => void }): ReactElement {
  return (
    <div className="note is-bad" role="alert">
      <Icon name="fail" />
      <div>
        <p>{message}</p>
        {requestId === null || requestId === undefined ? null : (
          <p className="small">
            Request <code>{requestId}</code>
          </p>
        )}
      </div>
      {retry === undefined ? null : (
        <button type="button" className="btn is-sm" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Words for what takes longer than a moment. */
export function Loading({ what }: { what: string }): ReactElement {
  return (
    <p className="loading muted" role="status">
      Reading {what}…
    </p>
  );
}
