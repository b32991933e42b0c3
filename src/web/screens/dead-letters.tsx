import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function DeadLetters(): ReactElement {
  return <Page title="Dead letters">{null}</Page>;
}
