import { nobody } from './custom.ts';
import type { ProviderDescriptor } from './descriptor.ts';

/** Posthorn itself: nothing comes in over HTTP, so there is nothing to verify (`src/notify/own-event-payload.ts`). */
export const posthorn: ProviderDescriptor = {
  title: 'Posthorn itself: its own events about the organization',
  url: 'sources.md#posthorns-own-events',
  verifier: () => nobody,
  secret: { style: 'text', isOurs: false },
  deliveryIds: [],
  distinctContents: 'never',
  docs: {
    header: 'none: the ingest URL takes no events',
    signed: '',
    secret: 'none',
    recognized: '',
    unrecognized: '',
  },
};
