import type { RouteComponent } from '@tanstack/react-router';
import { lazy, type ReactElement } from 'react';
import { basePath } from './api/base.ts';

type Module<Name extends string> = Record<Name, () => ReactElement>;

const againMs = 3000;
const reloadedKey = 'posthorn.reloaded';
const reloadEveryMs = 60_000;
const ahead: (() => Promise<unknown>)[] = [];

/** A screen whose part of the program is read when it is opened, or ahead of that. While the server is away it waits. */
export function screen<Name extends string>(read: () => Promise<Module<Name>>, name: Name): RouteComponent {
  ahead.push(read);
  return lazy(async () => {
    const { [name]: component } = await readAgain(read);
    return { default: (): ReactElement => component() };
  });
}

/** Reads all screens one after the other, so that they open at once, and also while the server is away. */
export async function readAhead(): Promise<void> {
  for (const read of ahead) await read().catch(() => undefined);
}

async function readAgain<Read>(read: () => Promise<Read>): Promise<Read> {
  for (;;) {
    try {
      return await read();
    } catch {
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
