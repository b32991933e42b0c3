import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { Range } from '../app/range.ts';
import { useOrganization } from '../app/use-api.ts';
import { count, percent } from '../ui/format.ts';
import { Panel } from '../ui/panel.tsx';
import { State } from '../ui/state.tsx';
import { Ago, Until } from '../ui/time.tsx';
import { EndpointFailure, FailureWords } from './endpoint-failure.tsx';
import { faultOf, needsAttention, type Target, type TargetList, targetWord } from './target-data.ts';

const maxShown = 10;

/** Each target in trouble: its state, cause, whose fault, and what happens by itself. */
export function UnhealthyTargets({ targets, range }: { targets: TargetList; range: Range }): ReactElement | null {
  const org = useOrganization();
  const sick = targets.rows.filter(({ state }) => needsAttention(state));
  if (sick.length === 0) return null;
  return (
    <Panel
      title="What is wrong"
      hint={`by target, ${range.said}`}
      end={
        <Link className="small" to="/o/$org/targets" params={{ org }}>
          {sick.length > maxShown ? `All ${sick.length}` : 'All targets'}
        </Link>
      }
      isRegion
    >
      <div className="table-wrap">
        <table className="table is-stack">
          <thead>
            <tr>
              <th scope="col">Target</th>
              <th scope="col">State</th>
              <th scope="col">Last failure</th>
              <th scope="col">At fault</th>
              <th scope="col" className="num">
                Delivered
              </th>
              <th scope="col" className="p3">
                What happens next
              </th>
            </tr>
          </thead>
          <tbody>
            {sick.slice(0, maxShown).map((target) => (
              <tr key={target.id}>
                <td className="two">
                  <Link className="name" to="/o/$org/targets/$id" params={{ org, id: target.id }}>
                    {target.name}
                  </Link>
                  <span className="sub">{target.sub}</span>
                </td>
                <td>
                  <State state={target.state} word={targetWord(target.state)} />
                </td>
                <td className="wrap">
                  <Cause target={target} />
                </td>
                <td data-label="At fault">{target.failure === null ? '–' : faultOf(target.failure.responseStatus)}</td>
                <td className="num" data-label="Delivered">
                  {target.share === null ? (
                    <span className="dim">none</span>
                  ) : (
                    <>
                      {percent(target.share)} <span className="sub">of {count(target.total)}</span>
                    </>
                  )}
                </td>
                <td className="p3 two" data-label="What happens next">
                  <Next target={target} targets={targets} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Cause({ target: { id, kind, failure } }: { target: Target }): ReactElement {
  if (failure === null) return <span className="dim">–</span>;
  return (
    <>
      {kind === 'endpoint' ? (
        <EndpointFailure id={id} at={failure.at} />
      ) : (
        <FailureWords status={failure.responseStatus} message={failure.errorMessage} />
      )}
      <span className="sub">
        <Ago at={failure.at} />
      </span>
    </>
  );
}

function Next({ target, targets }: { target: Target; targets: TargetList }): ReactElement {
  const circuit = targets.circuits.find(({ destinationId, state }) => destinationId === target.id && state !== 'closed');
  const probeAt = circuit?.state === 'open' ? circuit.probeAt : target.probeAt;
  if (circuit?.state === 'open' || probeAt !== null)
    return probeAt === null ? (
      <>A probe is sent</>
    ) : (
      <>
        Probe <Until at={probeAt} />
        <span className="sub">messages wait until then</span>
      </>
    );
  if (circuit?.state === 'half_open')
    return (
      <>
        Probes are under way
        <span className="sub">
          {circuit.probeSuccessCount} of {circuit.probeSuccessThreshold} succeeded
        </span>
      </>
    );
  if (target.state === 'circuit_open')
    return (
      <>
        A probe
        <span className="sub">after the cooldown</span>
      </>
    );
  return (
    <>
      Retries continue
      <span className="sub">then dead letter</span>
    </>
  );
}
