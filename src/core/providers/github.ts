import { bodySignatureVerifier } from './body-signature.ts';
import type { ProviderDescriptor, SignatureScheme } from './descriptor.ts';

const scheme: SignatureScheme = { algorithm: 'sha256', header: 'x-hub-signature-256', encoding: 'hex', prefix: 'sha256=' };

export const github: ProviderDescriptor = {
  title: 'GitHub',
  url: 'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
  verifier: (secrets) => bodySignatureVerifier(scheme, secrets),
  secret: { style: 'text', isOurs: true },
  deliveryIds: [{ header: 'x-github-delivery' }],
  distinctContents: {
    // GitHub sends the same body for each run of a workflow that is dispatched by hand, and for a member who joins a team again.
    fields: [
      // Only pushes have a `pusher`, and the time of the push.
      'pusher.name',
      ...['issue', 'pull_request', 'comment', 'discussion', 'release', 'alert'].map((object) => `${object}.updated_at`),
      ...['workflow_run', 'deployment_status'].map((object) => `${object}.updated_at`),
      'review.submitted_at',
      'starred_at',
    ],
    exceptActions: [
      ...['pinned', 'unpinned', 'resolved', 'unresolved', 'enqueued', 'dequeued'],
      ...['auto_merge_enabled', 'auto_merge_disabled', 'review_requested', 'review_request_removed'],
    ],
  },
  docs: {
    header: '`X-Hub-Signature-256: sha256=<hex>`',
    signed: 'the body',
    secret: 'the secret of the webhook',
    recognized:
      'pushes; events with the time of their `issue`, `pull_request`, `comment`, `review`, `discussion`, `release`, `alert`, `workflow_run`, `deployment_status` or star',
    unrecognized:
      'all others, such as `ping`, `workflow_dispatch`, `repository_dispatch`, `membership`, `check_run`, and the actions of an issue or pull request that need not change its time (`pinned`, `resolved`, `review_requested`, `auto_merge_enabled`, `enqueued` and their opposites)',
  },
};
