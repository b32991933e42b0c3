import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Applications(): ReactElement {
  return <Page title="Applications">{null}</Page>;
}
