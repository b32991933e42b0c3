import { signatureFailuresKeptMs } from '../../../data/intake/signature-failures.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { isoTimeOrNull } from '../../records/record-fields.ts';
import { signatureFailureInWords } from '../shared/signature-failure-words.ts';
import { type Advice, advise, counted, happened, holds, type Step } from './explanation.ts';

const maxAdvice = 3;

/** Why signatures of a source failed in the last 24 hours. The advice is about those after which no event came, and those that were taken as unverified. */
export async function signatureFailuresOf(
  { services, caller }: Call,
  { spec: { provider } }: PosthornObject<'Source'>,
  id: string,
): Promise<{ steps: Step[]; advice: Advice[] }> {
  const org = caller.organization.id;
  const { entries, requests, sinceMs } = await services.signatureFailures.of(org, id, services.clock.now() - signatureFailuresKeptMs);
  if (entries.length === 0) return { steps: [], advice: [] };
  const { lastEventAtMs } = await services.messages.eventCounters(org, id);
  const described = entries.map((entry) => ({ entry, ...signatureFailureInWords(entry, provider) }));
  const open = described.filter(({ entry: { isRefused, lastAtMs } }) => !isRefused || lastAtMs >= (lastEventAtMs ?? 0));
  const texts = [...new Set(open.map(({ advice }) => advice))].slice(0, maxAdvice);
  return {
    steps: [
      holds('signature_failures', `Requests whose signatures failed: ${requests}.`, { requests, since: isoTimeOrNull(sinceMs) }),
      ...described.map(({ entry, message }) => {
        const { reason, header = null, secondsBehind = null, isRefused: refused, address, requests: number, firstAtMs, lastAtMs } = entry;
        const verb = `${number === 1 ? 'was' : 'were'} ${refused ? 'refused' : 'accepted as unverified'}`;
        const data = { reason, header, secondsBehind, refused, address, requests: number, firstAt: isoTimeOrNull(firstAtMs) };
        return happened(lastAtMs, 'signature_failure', `${counted(number, 'request')} from ${address} ${verb}. ${message}`, data);
      }),
    ],
    advice:
      texts.length === 0
        ? []
        : [
            ...texts.map((text) => ({ text })),
            advise('Read from where and how often signatures fail.', 'GET', `/sources/${id}/signature-failures`),
          ],
  };
}
