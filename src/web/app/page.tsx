import { type ReactElement, type ReactNode, useEffect } from 'react';

export interface PageProps {
  title: string;
  /** Content below it: a list, usually. */
  crumbs?: ReactNode;
  sub?: ReactNode;
  actions?: ReactNode;
  /** Without the gutter, for lists. */
  isFull?: boolean;
  children: ReactNode;
}

/** The head and the body of a screen. */
export function Page({ title, crumbs, sub, actions, isFull = false, children }: PageProps): ReactElement {
  useEffect(() => {
    document.title = `${title} · Posthorn`;
  }, [title]);
  return (
    <main className="main" id="main" tabIndex={-1}>
      <header className="page-head">
        <div className="titles">
          {crumbs === undefined ? null : (
            <nav className="crumbs" aria-label="Breadcrumb">
              {crumbs}
            </nav>
          )}
          <h1>{title}</h1>
          {sub === undefined ? null : <p className="sub">{sub}</p>}
        </div>
        <div className="btn-row">{actions}</div>
      </header>
      <div className={isFull ? 'page is-full' : 'page'}>{children}</div>
    </main>
  );
}
