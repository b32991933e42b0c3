import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Routes(): ReactElement {
  return <Page title="Routes">{null}</Page>;
}
