import type { ReactElement } from 'react';
import { State, stateWord } from '../ui/state.tsx';

/** A message that has failed once waits for its retry. */
function shownState(status: string): string {
  return status === 'failed' ? 'retrying' : status;
}

export function MessageState({ status, isPill }: { status: string; isPill?: boolean }): ReactElement {
  return <State state={shownState(status)} isPill={isPill} />;
}

export function messageWord(status: string): string {
  return stateWord(shownState(status));
}
