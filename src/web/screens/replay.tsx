import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function ReplayReport(): ReactElement {
  return <Page title="Replay">{null}</Page>;
}
