import type { Plan } from '../core/records.ts';
import type { SpecOf } from './kinds.ts';

/** Throttles and the static address are for paid plans. */
export function isPaidPlan(plan: Plan): boolean {
  return plan !== 'free';
}

/** Warehouses are for these and those above. */
export function hasWarehouses(plan: Plan): boolean {
  return plan !== 'free' && plan !== 'starter';
}

/** Features of a destination that the plan lacks; null: none. */
export function destinationBeyondPlan({ type, throttle, http }: SpecOf<'Destination'>, plan: Plan): string | null {
  if (type !== 'http' && !hasWarehouses(plan)) return needs(`type ${type}`, 'the plan pro or above', plan);
  if (isPaidPlan(plan)) return null;
  if (throttle !== undefined && throttle.mode !== 'off') return needs(`throttle mode ${throttle.mode}`, 'a paid plan', plan);
  return http?.useStaticIp === true ? needs('useStaticIp', 'a paid plan', plan) : null;
}

/** Features of a cron job that the plan lacks; null: none. */
export function cronJobBeyondPlan({ useStaticIp }: SpecOf<'HttpCronJob'>, plan: Plan): string | null {
  return useStaticIp && !isPaidPlan(plan) ? needs('useStaticIp', 'a paid plan', plan) : null;
}

function needs(what: string, wanted: string, plan: Plan): string {
  return `${what} needs ${wanted}; this organization has ${plan}`;
}
