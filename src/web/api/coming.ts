/** Operations that the next merge brings. */
declare module './schema.ts' {
  interface Operations {
    'GET /organizations': {
      path: Record<string, never>;
      query: { cursor?: string };
      body: undefined;
      answer: { data: { id: string; slug: string; role: string }[] };
    };
  }
}
export type Coming = null;
