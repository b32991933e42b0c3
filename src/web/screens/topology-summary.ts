import { count, quantity } from '../ui/format.ts';
import { isWrong, type WiredRoute, type Wiring } from './topology-graph.ts';

/** How much there is, and what of it is wrong. `isPart`: filters leave out the rest of the wiring. */
export function summaryOf({ sources, routes, destinations }: Wiring, isPart: boolean): string {
  const wired = `${quantity(routes.length, 'route')} from ${quantity(sources.length, 'source')} to ${quantity(destinations.length, 'destination')}.`;
  const start = isPart ? `Shown: ${wired}` : wired;
  const of = (wanted: string): WiredRoute[] => routes.filter(({ state }) => state === wanted);
  const failing = of('failed').length;
  const partly = of('degraded').length;
  const faults = [
    cutOffText(of('circuit_open'), 'open'),
    cutOffText(of('half_open'), 'half_open'),
    failing === 0 ? [] : [`${quantity(failing, 'route')} failing`],
    partly === 0 ? [] : [`${quantity(partly, 'route')} failing in part`],
  ].flat();
  if (faults.length > 0) return `${start} ${faults.join(', ')}.`;
  // Such as an open circuit of a route that is disabled.
  const ends = destinations.filter(isWrong).length;
  if (ends > 0) return `${start} ${quantity(ends, 'destination')} in trouble.`;
  return `${start} ${isPart ? 'None of these' : 'None'} has failed in the last hour.`;
}

/** Counts routes, and circuits where those of each route are known. */
function cutOffText(routes: readonly WiredRoute[], wanted: 'open' | 'half_open'): string[] {
  if (routes.length === 0) return [];
  const [a, word] = wanted === 'open' ? ['an', 'open'] : ['a', 'half-open'];
  const circuits = routes.map(({ cutOff }) => [...cutOff.values()].filter(({ state }) => state === wanted).length);
  const sum = circuits.reduce((all, each) => all + each, 0);
  if (circuits.includes(0) || sum === routes.length) {
    const which = routes.length === 1 ? `${a} ${word} circuit` : `${word} circuits`;
    return [`${quantity(routes.length, 'route')} with ${which}`];
  }
  return [`${quantity(routes.length, 'route')} with ${count(sum)} ${word} circuits`];
}
