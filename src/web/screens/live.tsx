import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Live(): ReactElement {
  return <Page title="Live">{null}</Page>;
}
