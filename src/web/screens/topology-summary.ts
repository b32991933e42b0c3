import { count } from '../ui/format.ts';
import { isWrong, type Lead, type Wiring } from './topology-graph.ts';

/** How much there is, and what of it is wrong. `isPart`: filters leave out the rest of the wiring. */
export function summaryOf({ sources, leads, destinations }: Wiring, isPart: boolean): string {
  const wired = `${plural(leads.length, 'route')} from ${plural(sources.length, 'source')} to ${plural(destinations.length, 'destination')}.`;
  const start = isPart ? `Shown: ${wired}` : wired;
  const of = (wanted: string): Lead[] => leads.filter(({ state }) => state === wanted);
  const failing = of('failed').length;
  const partly = of('degraded').length;
  const faults = [
    cutOffText(of('circuit_open'), 'open'),
    cutOffText(of('half_open'), 'half_open'),
    failing === 0 ? [] : [`${plural(failing, 'route')} failing`],
    partly === 0 ? [] : [`${plural(partly, 'route')} failing in part`],
  ].flat();
  if (faults.length > 0) return `${start} ${faults.join(', ')}.`;
  // Such as an open circuit of a route that is disabled.
  const ends = destinations.filter(isWrong).length;
  if (ends > 0) return `${start} ${plural(ends, 'destination')} in trouble.`;
  return `${start} ${isPart ? 'None of these' : 'None'} has failed in the last hour.`;
}

/** Counts routes, and circuits where those of each route are known. */
function cutOffText(leads: readonly Lead[], wanted: 'open' | 'half_open'): string[] {
  if (leads.length === 0) return [];
  const [a, word] = wanted === 'open' ? ['an', 'open'] : ['a', 'half-open'];
  const circuits = leads.map(({ cutOff }) => [...cutOff.values()].filter(({ state }) => state === wanted).length);
  const sum = circuits.reduce((all, each) => all + each, 0);
  if (circuits.includes(0) || sum === leads.length) {
    const which = leads.length === 1 ? `${a} ${word} circuit` : `${word} circuits`;
    return [`${plural(leads.length, 'route')} with ${which}`];
  }
  return [`${plural(leads.length, 'route')} with ${count(sum)} ${word} circuits`];
}

export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
}
