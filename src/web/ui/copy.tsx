import { type ReactElement, useState } from 'react';
import { Icon } from './icon.tsx';

export interface CopyButtonProps {
  /** A function where the text is made only when it is wanted. */
  text: string | (() => string);
  label: string;
  isQuiet?: boolean;
}

/** Rejects where the browser has no clipboard: it offers one to secure origins and to loopback. */
async function written(text: string): Promise<void> {
  if (navigator.clipboard === undefined) throw new Error('no clipboard');
  await navigator.clipboard.writeText(text);
}

/** Copies `text`; confirms it for two seconds. */
export function CopyButton({ text, label, isQuiet = false }: CopyButtonProps): ReactElement {
  const [copied, setCopied] = useState<'no' | 'yes' | 'refused'>('no');
  const copy = async (): Promise<void> => {
    const outcome = await written(typeof text === 'string' ? text : text()).then(
      () => 'yes' as const,
      () => 'refused' as const,
    );
    setCopied(outcome);
    setTimeout(() => setCopied('no'), 2000);
  };
  return (
    <button type="button" className={`btn is-sm${isQuiet ? ' is-quiet' : ''}`} onClick={() => void copy()}>
      <Icon name="copy" />
      <span aria-live="polite">{copied === 'yes' ? 'Copied' : copied === 'refused' ? 'The browser refused' : label}</span>
    </button>
  );
}
