import { useBlocker } from '@tanstack/react-router';
import type { ReactElement, ReactNode } from 'react';
import { Confirm } from '../ui/confirm.tsx';

/** Asks whether the reader wants to leave the page, for as long as `isNeeded` returns true. Returns the question, which the page shows. */
export function useLeaveQuestion({
  title,
  isNeeded,
  children,
}: {
  title: string;
  isNeeded: () => boolean;
  children: ReactNode;
}): ReactElement {
  const blocker = useBlocker({ shouldBlockFn: isNeeded, enableBeforeUnload: isNeeded, withResolver: true });
  return (
    <Confirm
      title={title}
      act="Leave"
      keep="Stay"
      isDanger
      isOpen={blocker.status === 'blocked'}
      isPending={false}
      error={null}
      onClose={() => blocker.reset?.()}
      onAct={() => blocker.proceed?.()}
    >
      {children}
    </Confirm>
  );
}
