import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Target(): ReactElement {
  return <Page title="Target">{null}</Page>;
}
