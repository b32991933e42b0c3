import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';

/** metav1.Status, the fields that an error is made of. */
const statusSchema = z.object({
  message: z.string().default(''),
  reason: z.string().default(''),
  code: z.number().optional(),
  details: z
    .object({
      retryAfterSeconds: z.number().optional(),
      causes: z
        .array(z.object({ reason: z.string().default(''), message: z.string().default(''), field: z.string().default('') }))
        .default([]),
    })
    .optional(),
});
type Status = z.output<typeof statusSchema>;

/**
 * The typed error for an answer of the API server that is not a success: its HTTP status, its body (a metav1.Status,
 * as text or parsed) and its `Retry-After` in seconds. Codes are those that `ResourceStore` promises.
 */
export function statusError(httpStatus: number, body: unknown, retryAfterSeconds?: number): PosthornError {
  const status = parseStatus(body);
  const message = status.message === '' ? `the API server answered ${httpStatus}` : status.message;
  const wait = retryAfterSeconds ?? status.details?.retryAfterSeconds;
  // With a cause, its text is for logs: it names addresses of the cluster.
  const unavailable = (text = message): PosthornError =>
    new PosthornError('UNAVAILABLE', text, { retryAfterSeconds: wait, cause: new Error(message) });
  const typed = typedPatchCauses(message);
  if (typed !== null) return new PosthornError('VALIDATION_FAILED', message, { details: typed });
  switch (httpStatus) {
    case 400:
      return badRequest(message);
    case 401:
      return unavailable(`the API server refuses our credentials: ${message}`);
    case 403:
      return new PosthornError('FORBIDDEN', message.replace(forbiddingPolicy, ''));
    case 404:
      return new PosthornError('RESOURCE_NOT_FOUND', message);
    case 409:
      return conflict(status, message);
    case 410:
      return new PosthornError('EXPIRED', message);
    case 413:
      return new PosthornError('PAYLOAD_TOO_LARGE', message);
    case 422:
      return new PosthornError('VALIDATION_FAILED', message, { details: causesByField(status) });
    default:
      if (httpStatus === 429 || httpStatus >= 500) return unavailable();
      return new PosthornError('INTERNAL', message);
  }
}

function parseStatus(body: unknown): Status {
  let value = body;
  if (typeof body === 'string') {
    try {
      value = parsePlainJson(body);
    } catch {
      value = { message: body.slice(0, 500) };
    }
  }
  const parsed = statusSchema.safeParse(value);
  return parsed.success ? parsed.data : statusSchema.parse({});
}

function conflict(status: Status, message: string): PosthornError {
  if (status.reason === 'AlreadyExists') return new PosthornError('ALREADY_EXISTS', message);
  const owned = (status.details?.causes ?? []).filter((cause) => cause.reason === 'FieldManagerConflict');
  if (owned.length === 0) return new PosthornError('CONFLICT', message);
  const details = collect(
    owned.map((cause) => [withoutDot(cause.field), /^conflict with "([^"]*)"/.exec(cause.message)?.[1] ?? cause.message]),
  );
  return new PosthornError('FIELD_MANAGED', message, { details });
}

function badRequest(message: string): PosthornError {
  const unknown = [...message.matchAll(/(unknown field|duplicate field) "([^"]+)"/g)];
  if (unknown.length === 0) return new PosthornError('BAD_REQUEST', message);
  return new PosthornError('VALIDATION_FAILED', message, { details: collect(unknown.map((match) => [match[2] ?? '', match[1] ?? ''])) });
}

/** Server-side apply of an unknown field is a 500 without a reason; only its text identifies it. */
function typedPatchCauses(message: string): Record<string, string[]> | null {
  const match = /^failed to create typed patch object \([^)]*\): ([\s\S]*)$/.exec(message);
  if (match === null) return null;
  const complaints = [...(match[1] ?? '').matchAll(/^\s*\.([^:\n]+): (.+)$/gm)];
  if (complaints.length === 0) return { '': [match[1] ?? ''] };
  return collect(complaints.map((complaint) => [complaint[1] ?? '', complaint[2] ?? '']));
}

function causesByField(status: Status): Record<string, string[]> {
  // `<nil>` only means that rules were not evaluated because of the other causes.
  const causes = (status.details?.causes ?? []).filter((cause) => cause.field !== '<nil>');
  return collect(causes.map((cause) => [cause.field, complaintIn(cause)]));
}

const refusedValue = /^Invalid value: (?:(?:"(?:[^"\\]|\\.)*"|[^\s"{[]+): |(?!["{[]))/;
/** Prefix of the message of a change rule. */
const forbiddenChange = /^Forbidden: /;
const refusingPolicy = /^ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request: /;
/** Refusal of a write of our kinds, which people request. A refusal of other objects is for the log, and names its policy. */
const forbiddingPolicy = new RegExp(`^\\S+\\.posthorn\\.dev "[^"]*" is forbidden: ${refusingPolicy.source.slice(1)}`);

/** The error and its remedy, as a rule or a policy words it: without the value, which the sender has, and the server's own phrases. */
function complaintIn({ field, message }: { field: string; message: string }): string {
  const plain = message.replace(refusedValue, '').replace(forbiddenChange, '').replace(refusingPolicy, '');
  return plain.startsWith(`${field} in body `) ? plain.slice(`${field} in body `.length) : plain;
}

function withoutDot(path: string): string {
  return path.replace(/^\./, '');
}

function collect(pairs: [string, string][]): Record<string, string[]> {
  const details: Record<string, string[]> = {};
  for (const [field, text] of pairs) details[field] = [...(details[field] ?? []), text];
  return details;
}
