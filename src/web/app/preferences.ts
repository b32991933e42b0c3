import { installationTheme } from '../api/base.ts';
import type { Density } from '../ui/rows.tsx';
import type { Zone } from '../ui/time.tsx';
import { storedValue } from './stored-value.ts';

export type Theme = 'auto' | 'light' | 'dark';

export interface Preferences {
  theme: Theme;
  density: Density;
  zone: Zone;
  /** Keys without a modifier act (WCAG 2.1.4 requires a switch). */
  singleKeys: boolean;
}

const preferences = storedValue('posthorn.preferences', (stored): Preferences => {
  const { theme, density, zone, singleKeys }: Record<string, unknown> = Object(stored);
  return {
    theme: isTheme(theme) ? theme : isTheme(installationTheme) ? installationTheme : 'auto',
    density: density === 'compact' ? 'compact' : 'standard',
    zone: zone === 'local' ? 'local' : 'UTC',
    singleKeys: singleKeys !== false,
  };
});

/** Choices of the reader in this browser. */
export const usePreferences = preferences.use;

export function setPreferences(change: Partial<Preferences>): void {
  preferences.set((now) => ({ ...now, ...change }));
  applyAppearance();
}

/** Puts the theme and the density on the page. */
export function applyAppearance(): void {
  const { theme, density } = preferences.get();
  document.documentElement.dataset['density'] = density;
  if (theme === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

function isTheme(value: unknown): value is Theme {
  return value === 'auto' || value === 'light' || value === 'dark';
}
