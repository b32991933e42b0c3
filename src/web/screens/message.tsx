import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function MessageStory(): ReactElement {
  return <Page title="Message">{null}</Page>;
}
