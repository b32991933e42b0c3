import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { useOrganization } from '../app/use-api.ts';
import { AnswerLine } from '../ui/answer.tsx';
import { count, quantity } from '../ui/format.ts';
import { toneOfState } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import { type CutOff, type End, isWrong, rateText, routesAt, sideOf, type WiredRoute, type Wiring } from './topology-graph.ts';
import { summaryOf } from './topology-summary.ts';

export interface AnswerProps {
  wiring: Wiring;
  /** Filters leave out the rest of the wiring. */
  isPart: boolean;
  selected: string | null;
  /** The address names what is not there. */
  isGone: boolean;
  clear: () => void;
}

const question = 'Who is wired to whom?';

/** A summary of the map, or of its selected node, in a sentence; with links to the screens of that node. */
export function TopologyAnswer({ wiring, isPart, selected, isGone, clear: drop }: AnswerProps): ReactElement {
  const clear = (
    <button type="button" className="btn is-quiet" onClick={drop}>
      Show all
    </button>
  );
  if (selected === null)
    return (
      <AnswerLine tone={toneOfAll(wiring)} question={question} act={isGone ? clear : undefined}>
        <p>{isGone ? 'What was selected is not among these.' : summaryOf(wiring, isPart)}</p>
      </AnswerLine>
    );
  return <Selected wiring={wiring} at={selected} clear={clear} />;
}

function Selected({ wiring, at, clear }: { wiring: Wiring; at: string; clear: ReactElement }): ReactElement {
  const org = useOrganization();
  const routes = routesAt(wiring, at) ?? [];
  const names = new Map([...wiring.sources, ...wiring.destinations].map(({ id, name }) => [id, name]));
  const side = sideOf(at);
  const end = [...wiring.sources, ...wiring.destinations].find(({ id }) => id === at);
  const [first] = routes;
  const worstOf = end ?? routes.find(isWrong) ?? first;
  const cutOff = routes.flatMap((route) =>
    [...route.cutOff].filter(([id]) => side !== 'destinations' || id === at).map(([id, of]) => ({ route, id, of })),
  );
  const tone = cutOff.length > 0 ? 'open' : toneOfState((routes.find(isWrong) ?? worstOf)?.state ?? 'idle');
  return (
    <AnswerLine
      tone={tone}
      question={question}
      act={
        <>
          {end === undefined ? null : <EndLinks id={at} side={side} />}
          {end === undefined && first !== undefined ? (
            <Link className="btn" to="/o/$org/routes" params={{ org }} search={first.id === at ? { at } : commonSearch(at, first)}>
              {first.id === at ? 'Open route' : 'List routes'}
            </Link>
          ) : null}
          {clear}
        </>
      }
    >
      <p>{end === undefined ? routeSentence(routes, at, names) : endSentence(end, routes, side)}</p>
      {cutOff.slice(0, 3).map(({ route, id, of }) => (
        <p key={`${route.id} ${id}`} className="small">
          {route.name} to {names.get(id) ?? id}: <CircuitWords cutOff={of} />
        </p>
      ))}
      {cutOff.length > 3 ? <p className="small">{count(cutOff.length - 3)} more circuits are not closed.</p> : null}
    </AnswerLine>
  );
}

/** The filters of the list of routes that show those of a group. */
function commonSearch(
  at: string,
  { sourceId, destinationIds: [destinationId] }: WiredRoute,
): { sourceId?: string; destinationId?: string } {
  return { ...(at.startsWith('destination.') ? {} : { sourceId }), ...(at.startsWith('source.') ? {} : { destinationId }) };
}

function EndLinks({ id, side }: { id: string; side: 'sources' | 'routes' | 'destinations' }): ReactElement {
  const org = useOrganization();
  if (side === 'sources')
    return (
      <>
        <Link className="btn" to="/o/$org/sources" params={{ org }} search={{ at: id }}>
          Open source
        </Link>
        <Link className="btn is-quiet" to="/o/$org/routes" params={{ org }} search={{ sourceId: id }}>
          List routes
        </Link>
        <Link className="btn is-quiet" to="/o/$org/events" params={{ org }} search={{ sourceId: id }}>
          Events
        </Link>
      </>
    );
  return (
    <>
      <Link className="btn" to="/o/$org/targets/$id" params={{ org, id }}>
        Open destination
      </Link>
      <Link className="btn is-quiet" to="/o/$org/routes" params={{ org }} search={{ destinationId: id }}>
        List routes
      </Link>
      <Link className="btn is-quiet" to="/o/$org/deliveries" params={{ org }} search={{ destinationId: id }}>
        Deliveries
      </Link>
    </>
  );
}

function CircuitWords({ cutOff: { state, openedAt } }: { cutOff: CutOff }): ReactElement {
  return (
    <>
      {state === 'open' ? 'circuit open, events wait' : 'circuit half open, probes are under way'}
      {openedAt === null ? null : (
        <>
          , opened <Ago at={openedAt} />
        </>
      )}
    </>
  );
}

function endSentence({ name, perMinute }: End, routes: readonly WiredRoute[], side: 'sources' | 'routes' | 'destinations'): string {
  const rate = atRate(perMinute);
  if (side === 'sources') {
    if (routes.length === 0) return `No route begins at ${name}: its events are kept and go nowhere.`;
    const ends = new Set(routes.flatMap(({ destinationIds }) => destinationIds)).size;
    return `${name} feeds ${quantity(routes.length, 'route')} to ${quantity(ends, 'destination')}${rate}.`;
  }
  if (routes.length === 0) return `No route leads to ${name}.`;
  const sources = new Set(routes.map(({ sourceId }) => sourceId)).size;
  return `${name} gets events by ${quantity(routes.length, 'route')} from ${quantity(sources, 'source')}${perMinute === 0 ? '; none ended in the last hour' : rate}.`;
}

function atRate(perMinute: number | null): string {
  if (perMinute === null) return '';
  return perMinute === 0 ? '; nothing in the last hour' : `, at ${rateText(perMinute)} a minute`;
}

function routeSentence(routes: readonly WiredRoute[], at: string, names: ReadonlyMap<string, string>): string {
  const [first] = routes;
  if (first === undefined) return '';
  const nameOf = (id: string): string => names.get(id) ?? id;
  const spare = first.failoverIds.length === 0 ? '' : `, or else to ${inWords(first.failoverIds.map(nameOf))}`;
  const from = [...new Set(routes.map(({ sourceId }) => sourceId))];
  const to = [...new Set(routes.flatMap(({ destinationIds }) => destinationIds))];
  const way = `from ${inWords(from.map(nameOf))} to ${inWords(to.map(nameOf))}${first.id === at ? spare : ''}`;
  const perMinute = routes.reduce((sum, route) => sum + (route.perMinute ?? 0), 0);
  const who = first.id === at ? `${first.name} leads` : `${quantity(routes.length, 'route')} lead`;
  return `${who} ${way}${atRate(perMinute)}.`;
}

function toneOfAll({ routes, destinations }: Wiring): 'open' | 'bad' | 'warn' | 'ok' {
  const wrong = [...routes, ...destinations].filter(isWrong);
  if (wrong.some(({ state }) => toneOfState(state) === 'open')) return 'open';
  if (wrong.some(({ state }) => state === 'failed')) return 'bad';
  return wrong.length > 0 ? 'warn' : 'ok';
}

function inWords(names: readonly string[]): string {
  if (names.length > 3) return `${names.slice(0, 2).join(', ')} and ${count(names.length - 2)} more`;
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
