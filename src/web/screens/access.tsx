import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Access(): ReactElement {
  return <Page title="Keys and sessions">{null}</Page>;
}
