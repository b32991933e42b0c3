import { installationTheme } from '../api/base.ts';
import type { Zone } from '../ui/time.tsx';
import { kept } from './kept.ts';

export type Theme = 'auto' | 'light' | 'dark';

export interface Preferences {
  theme: Theme;
  zone: Zone;
  /** Keys without a modifier act (WCAG 2.1.4 asks for a switch). */
  singleKeys: boolean;
}

const preferences = kept('posthorn.preferences', (stored): Preferences => {
  const { theme, zone, singleKeys }: Record<string, unknown> = Object(stored);
  return {
    theme: isTheme(theme) ? theme : isTheme(installationTheme) ? installationTheme : 'auto',
    zone: zone === 'local' ? 'local' : 'UTC',
    singleKeys: singleKeys !== false,
  };
});

/** What this browser keeps of its reader's choices. */
export const usePreferences = preferences.use;

export function setPreferences(change: Partial<Preferences>): void {
  preferences.set((now) => ({ ...now, ...change }));
  showTheme();
}

/** Puts the theme on the page. */
export function showTheme(): void {
  const { theme } = preferences.get();
  if (theme === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

function isTheme(value: unknown): value is Theme {
  return value === 'auto' || value === 'light' || value === 'dark';
}
