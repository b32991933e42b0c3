import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Deliveries(): ReactElement {
  return <Page title="Deliveries">{null}</Page>;
}
