import type { Plan } from '../core/records.ts';

const kibibyte = 1024;

/** Largest accepted payload of a plan in bytes. */
export function planPayloadLimitBytes(plan: Plan): number {
  switch (plan) {
    case 'free':
      return 64 * kibibyte;
    case 'starter':
    case 'pro':
      return 256 * kibibyte;
    case 'business':
    case 'enterprise':
      return 1024 * kibibyte;
  }
}

/** Messages that a plan may queue in a UTC month; null: any number. */
export function planMonthlyMessages(plan: Plan): number | null {
  switch (plan) {
    case 'free':
      return 10_000;
    case 'starter':
      return 100_000;
    case 'pro':
      return 1_000_000;
    case 'business':
      return 10_000_000;
    case 'enterprise':
      return null;
  }
}

/** Resources of each kind that an organization of a plan may have in its namespace; null: any number. All of them share one etcd. */
export function planObjectsPerKind(plan: Plan): number | null {
  switch (plan) {
    case 'free':
      return 200;
    case 'starter':
      return 1000;
    case 'pro':
      return 5000;
    case 'business':
      return 20_000;
    case 'enterprise':
      return null;
  }
}
