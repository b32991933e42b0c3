import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Channels(): ReactElement {
  return <Page title="Channels">{null}</Page>;
}
