import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, useEffect, useState } from 'react';
import { basePath, version } from '../api/base.ts';
import { ApiError } from '../api/client.ts';
import { currentSession, signIn } from '../api/session.ts';
import { Icon } from '../ui/icon.tsx';
import { Command } from '../ui/notices.tsx';

type Kind = 'key' | 'token';

/** Who am I here? */
export function Login(): ReactElement {
  const { to } = useSearch({ from: '/login' });
  const navigate = useNavigate();
  const client = useQueryClient();
  const [kind, setKind] = useState<Kind>('key');
  const [credential, setCredential] = useState('');
  const [organization, setOrganization] = useState('');
  const [refused, setRefused] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = 'Sign in · Posthorn';
  }, []);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setRefused(null);
    try {
      await signIn(credential.trim(), kind === 'token' ? organization.trim() || undefined : undefined);
      if ((await currentSession()) === null) {
        setRefused(
          'The browser did not keep the session: it keeps cookies of HTTPS and of loopback names. Open the console by one of these.',
        );
        return;
      }
      client.clear();
      await navigate({ href: to?.startsWith('/') === true ? `${basePath}/console${to}` : `${basePath}/console/`, replace: true });
    } catch (thrown) {
      setRefused(thrown instanceof ApiError ? thrown.message : String(thrown));
    } finally {
      setBusy(false);
    }
  };
  const word = kind === 'key' ? 'API key' : 'Kubernetes token';
  return (
    <main className="login" id="main">
      <div className="login-card">
        <div className="login-brand">
          <Icon name="horn" size={34} className="horn" />
          <h1>Posthorn</h1>
          <p className="muted">{location.host}</p>
        </div>
        <form className="form" onSubmit={(event) => void submit(event)}>
          <span className="segments login-kind" role="group" aria-label="Credential">
            <button type="button" aria-pressed={kind === 'key'} onClick={() => setKind('key')}>
              API key
            </button>
            <button type="button" aria-pressed={kind === 'token'} onClick={() => setKind('token')}>
              Kubernetes token
            </button>
          </span>
          {kind === 'token' ? (
            <div className="field">
              <label htmlFor="organization">Organization</label>
              <input
                className="input"
                id="organization"
                aria-describedby="organization-help"
                value={organization}
                onChange={({ target }) => setOrganization(target.value)}
              />
              <p className="help" id="organization-help">
                Without it: that of the service account, else the first of 100 in which the token has rights.
              </p>
            </div>
          ) : null}
          <div className="field">
            <label htmlFor="credential">{word}</label>
            <input
              className="input is-mono"
              id="credential"
              type="password"
              autoComplete="current-password"
              required
              aria-invalid={refused !== null}
              aria-describedby="credential-error credential-help"
              value={credential}
              onChange={({ target }) => setCredential(target.value)}
            />
            <div id="credential-error" role="alert">
              {refused === null ? null : (
                <p className="error">
                  <Icon name="fail" size={12} />
                  {refused}
                </p>
              )}
            </div>
            <p className="help" id="credential-help">
              The session holds it sealed in a cookie that scripts cannot read, and ends after 12 hours without use.
            </p>
          </div>
          <button className="btn is-primary is-block" type="submit" disabled={isBusy}>
            {isBusy ? 'Signing in…' : 'Sign in'}
          </button>
        </form>
        <details className="small">
          <summary>How do I get a credential?</summary>
          <Command text={'kubectl create token me --audience posthorn\ncat .posthorn/api-key'} />
        </details>
      </div>
      <p className="small dim">Posthorn {version}</p>
    </main>
  );
}
