import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function EventStory(): ReactElement {
  return <Page title="Event">{null}</Page>;
}
