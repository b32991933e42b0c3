import type { Plan } from '../core/records.ts';

const kibibyte = 1024;

/** Largest accepted payload of a plan in bytes (API decisions, "Plans"). */
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
