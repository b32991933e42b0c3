import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Sources(): ReactElement {
  return <Page title="Sources">{null}</Page>;
}
