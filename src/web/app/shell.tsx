import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { type ReactElement, useEffect, useMemo, useState } from 'react';
import { version } from '../api/base.ts';
import { currentSession, type Session, signOut } from '../api/session.ts';
import { Icon } from '../ui/icon.tsx';
import { Failure, Loading } from '../ui/notices.tsx';
import { DensityContext } from '../ui/rows.tsx';
import { ZoneContext } from '../ui/time.tsx';
import { Toasts } from '../ui/toast.tsx';
import { type Keys, useKeys } from './keys.ts';
import { groups } from './navigation.ts';
import { setPreferences, type Theme, usePreferences } from './preferences.ts';
import { Search } from './search.tsx';
import { Shortcuts } from './shortcuts.tsx';
import { useOrganization, useRead } from './use-api.ts';

const nextTheme: Record<Theme, Theme> = { auto: 'light', light: 'dark', dark: 'auto' };

/** The frame of every screen; without a session, the way to the login. */
export function Shell(): ReactElement {
  const { zone, density } = usePreferences();
  const { data, error, refetch, isPending } = useQuery({
    queryKey: ['session'],
    queryFn: ({ signal }) => currentSession(signal),
    refetchInterval: 60_000,
  });
  if (data === undefined && error !== null)
    return (
      <div className="login">
        <Failure message={error.message} retry={() => void refetch()} />
      </div>
    );
  if (isPending || data === undefined) return <Loading what="the session" />;
  if (data === null) return <ToLogin />;
  return (
    <ZoneContext value={zone}>
      <DensityContext value={density}>
        <Frame session={data} />
      </DensityContext>
    </ZoneContext>
  );
}

/** Goes to the login, which comes back here. Once: until the login shows, the address is already its own. */
function ToLogin(): ReactElement {
  const navigate = useNavigate();
  const { pathname, searchStr } = useLocation();
  const [to] = useState(`${pathname}${searchStr}`);
  useEffect(() => void navigate({ to: '/login', search: { to }, replace: true }), [navigate, to]);
  return <Loading what="the login" />;
}

function Frame({ session }: { session: Session }): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const [isSearching, setSearching] = useState(false);
  const [showsKeys, setShowsKeys] = useState(false);
  const [isMenuOpen, setMenuOpen] = useState(false);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setSearching(true);
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
  const keys = useMemo((): Keys => {
    const places = groups.flatMap((group) => group.places).flatMap(({ key, to }) => (key === undefined ? [] : [{ key, to }]));
    return new Map([
      ['?', () => setShowsKeys(true)],
      ...places.map(({ key, to }): [string, () => void] => [`g ${key}`, () => void navigate({ to, params: { org } })]),
    ]);
  }, [navigate, org]);
  useKeys(keys);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another screen closes the menu
  useEffect(() => setMenuOpen(false), [pathname]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <div className={isMenuOpen ? 'app is-menu-open' : 'app'}>
        <TopBar
          session={session}
          isMenuOpen={isMenuOpen}
          onMenu={() => setMenuOpen(!isMenuOpen)}
          onSearch={() => setSearching(true)}
          onKeys={() => setShowsKeys(true)}
        />
        <Sidebar />
        <Outlet />
      </div>
      <Toasts />
      <Search isOpen={isSearching} onClose={() => setSearching(false)} />
      <Shortcuts isOpen={showsKeys} onClose={() => setShowsKeys(false)} />
    </>
  );
}

interface TopBarProps {
  session: Session;
  isMenuOpen: boolean;
  onMenu: () => void;
  onSearch: () => void;
  onKeys: () => void;
}

function TopBar({ session, isMenuOpen, onMenu, onSearch, onKeys }: TopBarProps): ReactElement {
  const org = useOrganization();
  const { theme, density, zone } = usePreferences();
  return (
    <header className="topbar">
      <Link className="brand" to="/o/$org/overview" params={{ org }}>
        <Icon name="horn" size={22} className="horn" />
        Posthorn
      </Link>
      <button className="menu-button btn is-quiet is-icon" type="button" aria-label="Menu" aria-expanded={isMenuOpen} onClick={onMenu}>
        <Icon name="menu" />
      </button>
      <Organizations />
      <span className="spacer" />
      <button type="button" className="jump" onClick={onSearch}>
        <Icon name="search" />
        <span>Search or paste an id</span>
        <kbd>⌘K</kbd>
      </button>
      <button
        className="wide-only btn is-quiet"
        type="button"
        title="Time zone"
        onClick={() => setPreferences({ zone: zone === 'UTC' ? 'local' : 'UTC' })}
      >
        {zone === 'UTC' ? 'UTC' : 'Local time'}
      </button>
      <button
        className="wide-only btn is-quiet"
        type="button"
        title="Rows of tables close together"
        aria-pressed={density === 'compact'}
        onClick={() => setPreferences({ density: density === 'compact' ? 'standard' : 'compact' })}
      >
        Compact
      </button>
      <button
        className="wide-only btn is-quiet is-icon"
        type="button"
        aria-label="Keyboard shortcuts"
        title="Keyboard shortcuts"
        onClick={onKeys}
      >
        <Icon name="help" />
      </button>
      <button
        className="btn is-quiet is-icon"
        type="button"
        aria-label={`Theme: ${theme}`}
        title={`Theme: ${theme}`}
        onClick={() => setPreferences({ theme: nextTheme[theme] })}
      >
        <Icon name="theme" />
      </button>
      {session.id === null ? (
        <span className="tag wide-only" title="This installation listens on this machine alone, so it requires no login.">
          local
        </span>
      ) : (
        <SignOut who={session.who} />
      )}
    </header>
  );
}

function SignOut({ who }: { who: string }): ReactElement {
  const { mutate, isPending, error } = useMutation({ mutationFn: signOut });
  return (
    <>
      {error === null ? null : (
        <span className="small" role="alert">
          Still signed in: {error.message}
        </span>
      )}
      <button className="btn is-quiet is-sm" type="button" title={`Signed in as ${who}`} disabled={isPending} onClick={() => mutate()}>
        Sign out
      </button>
    </>
  );
}

/** Which organization the console shows; a choice where the caller may see several. */
function Organizations(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const { data } = useRead('GET /organizations');
  const slugs = data?.data.map(({ slug }) => slug) ?? [];
  // The address may name one by its id, or one beyond the first page.
  if (!slugs.includes(org)) slugs.unshift(org);
  if (slugs.length < 2)
    return (
      <span className="org">
        <strong>{org}</strong>
      </span>
    );
  return (
    <select
      className="org select"
      aria-label="Organization"
      value={org}
      onChange={({ target }) => void navigate({ to: '/o/$org/overview', params: { org: target.value } })}
    >
      {slugs.map((slug) => (
        <option key={slug}>{slug}</option>
      ))}
    </select>
  );
}

function Sidebar(): ReactElement {
  const org = useOrganization();
  return (
    <nav className="sidebar" aria-label="Console">
      {groups.map(({ title, places }) => (
        <div className="nav-group" key={title ?? ''}>
          {title === null ? null : <h2>{title}</h2>}
          <ul>
            {places.map(({ to, word, icon }) => (
              <li key={to}>
                <Link to={to} params={{ org }} activeProps={{ 'aria-current': 'page' }}>
                  <Icon name={icon} />
                  {word}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
      <p className="side-foot">Posthorn {version}</p>
    </nav>
  );
}
