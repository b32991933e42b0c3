import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Targets(): ReactElement {
  return <Page title="Targets">{null}</Page>;
}
