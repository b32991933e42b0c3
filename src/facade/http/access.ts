import type { Session } from '../../data/sessions/session-store.ts';

/** By what a request is accepted. */
export interface Access {
  how: 'apiKey' | 'token' | 'session' | 'loopback';
  /** `org`: id of the organization that has it. Null: the request has none. */
  session: { org: string; session: Session } | null;
  /** Required `X-Posthorn-CSRF` of requests that change something; null: none. */
  csrfToken: string | null;
}

/** The sender of a request, as a session records it. */
export interface Client {
  address: string;
  /** At most 200 characters. */
  userAgent: string;
}
