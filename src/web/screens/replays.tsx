import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Replays(): ReactElement {
  return <Page title="Replays">{null}</Page>;
}
