import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiError } from './api/client.ts';
import { applyAppearance } from './app/preferences.ts';
import { router } from './router.tsx';
import { readAhead } from './screen.tsx';

const tries = 3;
const readAheadAfterMs = 1000;

applyAppearance();
const client = new QueryClient({
  queryCache: new QueryCache({
    // The session has ended: the shell queries the session, and shows the login.
    onError: (error) => {
      if (error instanceof ApiError && error.status === 401) void client.invalidateQueries({ queryKey: ['session'] });
    },
  }),
  defaultOptions: {
    queries: {
      // A browser without a network still reaches its own machine.
      networkMode: 'always',
      staleTime: 2000,
      retry: (failures, error) => failures < tries && error instanceof ApiError && error.isPassing,
      // A lasting failure is shown; queries continue, so that the page recovers by itself.
      retryDelay: (failures) => Math.min(1000 * 2 ** failures, 10_000),
      refetchOnReconnect: true,
    },
    mutations: { networkMode: 'always' },
  },
});
const root = document.getElementById('root');
if (root !== null)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
setTimeout(() => void readAhead(), readAheadAfterMs);
