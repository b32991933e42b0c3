import { useEffect, useState } from 'react';

const settlesAfterMs = 150;
/** The API takes no longer text to search for. */
export const maxSearchLength = 200;

/** The text, once it stays unchanged. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), text === '' ? 0 : settlesAfterMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
