import { useSyncExternalStore } from 'react';
import { installationTheme } from '../api/base.ts';
import type { Zone } from '../ui/time.tsx';

export type Theme = 'auto' | 'light' | 'dark';

export interface Preferences {
  theme: Theme;
  zone: Zone;
  /** Keys without a modifier act (WCAG 2.1.4 asks for a switch). */
  singleKeys: boolean;
}

const key = 'posthorn.preferences';
const listeners = new Set<() => void>();
let current = read();

/** What this browser keeps of its reader's choices. */
export function usePreferences(): Preferences {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}

export function setPreferences(change: Partial<Preferences>): void {
  current = { ...current, ...change };
  try {
    localStorage.setItem(key, JSON.stringify(current));
  } catch {
    // A browser that keeps nothing has them for this page.
  }
  showTheme();
  for (const listener of listeners) listener();
}

/** Puts the theme on the page. */
export function showTheme(): void {
  if (current.theme === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = current.theme;
}

function read(): Preferences {
  const kept = stored();
  return {
    theme: isTheme(kept['theme']) ? kept['theme'] : isTheme(installationTheme) ? installationTheme : 'auto',
    zone: kept['zone'] === 'local' ? 'local' : 'UTC',
    singleKeys: kept['singleKeys'] !== false,
  };
}

function stored(): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? '{}');
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function isTheme(value: unknown): value is Theme {
  return value === 'auto' || value === 'light' || value === 'dark';
}
