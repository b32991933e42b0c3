import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Overview(): ReactElement {
  return <Page title="Overview">{null}</Page>;
}
