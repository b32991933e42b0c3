import { bodySignatureVerifier } from './body-signature.ts';
import type { ProviderDescriptor, SignatureScheme } from './descriptor.ts';

const scheme: SignatureScheme = { algorithm: 'sha256', header: 'x-hub-signature', encoding: 'hex', prefix: 'sha256=' };

export const bitbucket: ProviderDescriptor = {
  title: 'Bitbucket',
  url: 'https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/#Secure-webhooks',
  verifier: (secrets) => bodySignatureVerifier(scheme, secrets),
  secret: { style: 'text', isOurs: true },
  deliveryIds: [{ header: 'x-request-uuid' }],
  distinctContents: {
    fields: [
      ...['pullrequest', 'comment', 'issue', 'commit_status'].map((object) => `${object}.updated_on`),
      ...['approval.date', 'changes_request.date'],
    ],
    kindHeader: 'x-event-key',
  },
  docs: {
    header: '`X-Hub-Signature: sha256=<hex>`',
    signed: 'the body',
    secret: 'the secret of the webhook',
    recognized: 'bodies with the time of a `pullrequest`, `comment`, `issue`, `commit_status` or approval, per `X-Event-Key`',
    unrecognized: 'all others, such as `repo:push`: a branch may be deleted and pushed again',
  },
};
