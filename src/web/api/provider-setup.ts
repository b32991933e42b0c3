// Made by hack/gen-web-api.ts from src/core/providers. Do not edit.

interface ProviderSetup {
  title: string;
  /** Page on which the sender describes its signatures. */
  url: string | null;
  header: string;
  signed: string;
  /** Which secret of the provider is meant. */
  secret: string;
  /** Posthorn can make the secret; otherwise the provider does. */
  isSecretOurs: boolean;
}

export const providerSetup: Readonly<Record<string, ProviderSetup>> = {
  "generic": {"title":"senders of your own","url":null,"header":"X-Webhook-Signature, or X-Signature when the first is absent: the hexadecimal HMAC-SHA256, alone or after sha256=","signed":"the body","secret":"any text","isSecretOurs":true},
  "custom": {"title":"senders whose scheme the source describes","url":null,"header":"the fields of verification: header, algorithm (sha1, sha256, sha512), encoding (hex, base64 with its padding), prefix","signed":"the body","secret":"any text","isSecretOurs":true},
  "github": {"title":"GitHub","url":"https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries","header":"X-Hub-Signature-256: sha256=<hex>","signed":"the body","secret":"the secret of the webhook","isSecretOurs":true},
  "gitlab": {"title":"GitLab","url":"https://docs.gitlab.com/user/project/integrations/webhooks/#secret-tokens","header":"X-Gitlab-Token: the secret token itself; with a signing token (whsec_…) the headers of standard-webhooks","signed":"nothing; with a signing token <id>.<timestamp>.<body>","secret":"the secret token, or the signing token","isSecretOurs":true},
  "stripe": {"title":"Stripe","url":"https://docs.stripe.com/webhooks#verify-manually","header":"Stripe-Signature: t=<seconds>,v1=<hex>, several v1 allowed","signed":"<seconds>.<body>","secret":"the secret of the endpoint, as it is shown","isSecretOurs":false},
  "shopify": {"title":"Shopify","url":"https://shopify.dev/docs/apps/build/webhooks/subscribe/https#step-2-validate-the-origin-of-your-webhook-to-ensure-its-coming-from-shopify","header":"X-Shopify-Hmac-SHA256: <base64>","signed":"the body","secret":"the client secret of the app","isSecretOurs":false},
  "slack": {"title":"Slack","url":"https://docs.slack.dev/authentication/verifying-requests-from-slack","header":"X-Slack-Signature: v0=<hex>, X-Slack-Request-Timestamp","signed":"v0:<seconds>:<body>","secret":"the signing secret of the app","isSecretOurs":false},
  "twilio": {"title":"Twilio","url":"https://www.twilio.com/docs/usage/webhooks/webhooks-security","header":"X-Twilio-Signature: <base64 HMAC-SHA1>","signed":"the address and the fields of the form (at most 5,000); with other bodies the address, which holds the digest of the body as bodySHA256","secret":"the auth token of the account","isSecretOurs":false},
  "paddle": {"title":"Paddle","url":"https://developer.paddle.com/webhooks/signature-verification","header":"Paddle-Signature: ts=<seconds>;h1=<hex>, several h1 allowed","signed":"<seconds>:<body>","secret":"the secret of the endpoint, as it is shown","isSecretOurs":false},
  "standard-webhooks": {"title":"senders that keep Standard Webhooks","url":"https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md","header":"webhook-id, webhook-timestamp, webhook-signature: v1,<base64> or v1a,<base64>, several allowed","signed":"<id>.<timestamp>.<body>, by HMAC-SHA256 with the bytes of the base64 in the secret (v1), or by Ed25519 (v1a)","secret":"whsec_ and base64, or for v1a the public key of the sender: whpk_ and base64","isSecretOurs":true},
  "svix": {"title":"Svix and its customers","url":"https://docs.svix.com/receiving/verifying-payloads/how-manual","header":"svix-id, svix-timestamp, svix-signature: v1,<base64> or v1a,<base64>, or as standard-webhooks","signed":"<id>.<timestamp>.<body>, as standard-webhooks","secret":"the secret of the endpoint: whsec_ and base64, or its public key: whpk_ and base64","isSecretOurs":false},
  "intercom": {"title":"Intercom","url":"https://developers.intercom.com/docs/webhooks/webhook-notifications#signed-notifications","header":"X-Hub-Signature: sha1=<hex HMAC-SHA1>","signed":"the body","secret":"the client secret of the app","isSecretOurs":false},
  "sentry": {"title":"Sentry","url":"https://docs.sentry.io/organization/integrations/integration-platform/webhooks/#verifying-the-signature","header":"Sentry-Hook-Signature: <hex>","signed":"the body","secret":"the client secret of the integration","isSecretOurs":false},
  "bitbucket": {"title":"Bitbucket","url":"https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/#Secure-webhooks","header":"X-Hub-Signature: sha256=<hex>","signed":"the body","secret":"the secret of the webhook","isSecretOurs":true},
};
