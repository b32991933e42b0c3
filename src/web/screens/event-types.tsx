import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function EventTypes(): ReactElement {
  return <Page title="Event catalog">{null}</Page>;
}
