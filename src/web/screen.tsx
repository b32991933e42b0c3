import type { RouteComponent } from '@tanstack/react-router';
import { type ReactElement, useEffect, useState } from 'react';
import { basePath } from './api/base.ts';
import { Failure, Loading } from './ui/notices.tsx';

type Module<Name extends string> = Record<Name, () => ReactElement>;

const againMs = 3000;
const reloadedKey = 'posthorn.reloaded';
const reloadEveryMs = 60_000;
const ahead: Part[] = [];

/** A part of the program, with the screen in it once it is read. */
interface Part {
  screen: (() => ReactElement) | null;
  read: () => Promise<void>;
}

/** A screen whose part of the program is loaded when it is opened, or ahead of that. While the server is down it reports so, and waits. */
export function screen<Name extends string>(read: () => Promise<Module<Name>>, name: Name): RouteComponent {
  const part: Part = {
    screen: null,
    read: async () => {
      const { [name]: component } = await read();
      part.screen = component;
    },
  };
  ahead.push(part);
  return () => <OnceRead part={part} />;
}

function OnceRead({ part }: { part: Part }): ReactElement {
  const [Screen, setScreen] = useState(() => part.screen);
  const [isAway, setAway] = useState(false);
  useEffect(() => {
    const closed = new AbortController();
    const open = async (): Promise<void> => {
      await readAgain(part, closed.signal, () => setAway(true));
      setScreen(() => part.screen);
    };
    if (part.screen === null) void open();
    return () => closed.abort();
  }, [part]);
  if (Screen !== null) return <Screen />;
  return (
    <main className="main" id="main">
      {isAway ? <Failure message="The API does not answer. This screen opens when it does." /> : <Loading what="the screen" />}
    </main>
  );
}

/** Loads all screens one after the other, so that they open at once, and also while the server is down. */
export async function readAhead(): Promise<void> {
  for (const part of ahead) await part.read().catch(() => undefined);
}

/** Until it is read, or the signal aborts. `onFailure`: each time that it fails. */
async function readAgain(part: Part, signal: AbortSignal, onFailure: () => void): Promise<void> {
  while (!signal.aborted) {
    try {
      await part.read();
      return;
    } catch {
      onFailure();
      // The server has another version of the program: this page is of one whose files are gone.
      if (await isServed()) reload();
      await new Promise((resolve) => setTimeout(resolve, againMs));
    }
  }
}

async function isServed(): Promise<boolean> {
  const answer = await fetch(`${basePath}/console/`, { method: 'HEAD', cache: 'no-store' }).catch(() => null);
  return answer?.ok === true;
}

function reload(): void {
  const last = Number(sessionStorage.getItem(reloadedKey) ?? 0);
  if (Date.now() - last < reloadEveryMs) return;
  sessionStorage.setItem(reloadedKey, String(Date.now()));
  location.reload();
}
