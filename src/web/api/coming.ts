/** Operations that the next merge brings. */
interface SessionData {
  id: string | null;
  how: 'session' | 'loopback' | 'apiKey' | 'token';
  who: string;
  role: string;
  scopes: string[];
  organization: { id: string; slug: string };
  expiresAt: string | null;
  csrfToken: string | null;
}
declare module './schema.ts' {
  interface Operations {
    'GET /sessions/current': { path: Record<string, never>; query: Record<string, never>; body: undefined; answer: { data: SessionData } };
    'GET /sessions': {
      path: Record<string, never>;
      query: { cursor?: string; limit?: number };
      body: undefined;
      answer: { data: (SessionData & { createdAt: string; lastSeenAt: string; address: string; userAgent: string })[] };
    };
    'POST /sessions': {
      path: Record<string, never>;
      query: Record<string, never>;
      body: { credential: string; organization?: string };
      answer: { data: SessionData };
    };
    'DELETE /sessions/{id}': { path: { id: string }; query: Record<string, never>; body: undefined; answer: null };
    'GET /organizations': {
      path: Record<string, never>;
      query: { cursor?: string };
      body: undefined;
      answer: { data: { id: string; slug: string; role: string }[] };
    };
  }
}

export type { SessionData };
