import { Router } from 'express';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { htmlText } from '../../core/html-text.ts';
import { type ConfirmationRecipient, confirmationRecipient, mailConfirmationPath } from '../../core/mail-confirmation.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { MailRecipients } from '../../data/alerts/mail-recipients.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import { readBody } from './read-body.ts';

const maxBodyBytes = 1024;

const headers = {
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
};

/**
 * The page where the owner of an address accepts or declines the e-mails of an organization. Programs that follow the links of e-mails change nothing: only
 * the form of the page decides. It requires only the token of the link.
 */
export function mailConfirmationRouter({
  recipients,
  registry,
  keyring,
  clock,
}: {
  recipients: MailRecipients;
  registry: RegistryReader;
  keyring: Keyring;
  clock: Clock;
}): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const asked = async (token: unknown): Promise<ConfirmationRecipient | null> => {
    const recipient = typeof token === 'string' ? confirmationRecipient(token, keyring, clock.now()) : null;
    // Entries of a deleted organization would never be removed.
    return recipient === null || (await registry.get('organization', recipient.org)) === null ? null : recipient;
  };
  router.use(mailConfirmationPath, (_request, response, next) => {
    response.set(headers);
    next();
  });
  router.get(mailConfirmationPath, async (request, response) => {
    const recipient = await asked(request.query['token']);
    if (recipient === null) response.status(400).type('html').send(invalid);
    else response.type('html').send(question(recipient.address));
  });
  router.post(mailConfirmationPath, async (request, response) => {
    const recipient = await asked(request.query['token']);
    if (recipient === null) {
      response.status(400).type('html').send(invalid);
      return;
    }
    const answer = new URLSearchParams((await readBody(request, response, maxBodyBytes)).toString()).get('answer');
    if (answer !== 'confirmed' && answer !== 'declined') throw new PosthornError('BAD_REQUEST', 'answer must be confirmed or declined.');
    await recipients.decide(recipient.org, recipient.address, answer);
    response.type('html').send(answer === 'confirmed' ? confirmed : declined);
  });
  return router;
}

function page(body: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>Posthorn: alerts by e-mail</title></head>
<body>
<h1>Alerts by e-mail</h1>
${body}
</body>
</html>
`;
}

const question = (address: string): string =>
  page(`<p>An organization that uses Posthorn wants to send alerts about its webhooks to <strong>${htmlText(address)}</strong>.</p>
<form method="post">
<button name="answer" value="confirmed">Allow alerts</button>
<button name="answer" value="declined">Decline</button>
</form>`);
const confirmed = page('<p>Alerts of this organization are sent to your address from now on.</p>');
const declined = page('<p>This organization sends nothing to your address, and you are not asked again.</p>');
const invalid = page('<p>This link is not valid, or it is older than 7 days. Nothing has changed.</p>');
