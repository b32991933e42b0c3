import { certificateFor } from './manifests.ts';

/** A body with which the API takes secrets; `secret` gives the value of a field. */
interface BodyWithSecrets {
  path: string;
  make(secret: (name: string) => string): Record<string, unknown>;
}

/** Every body with secrets, of destinations that deliver to this URL among others. */
export function bodiesWithSecrets(url: string): BodyWithSecrets[] {
  return [
    http('Basic', (secret) => ({
      authType: 'basic',
      authConfig: { username: 'shop', password: secret('password') },
      signingSecret: secret('signingSecret'),
    })),
    http('Ed25519', (secret) => ({ signatureScheme: 'ed25519', signingSecret: secret('signingKey') })),
    http('Bearer', (secret) => ({ authType: 'bearer', authConfig: { token: secret('token') } })),
    http('Key', (secret) => ({ authType: 'api_key', authConfig: { headerName: 'X-Key', key: secret('key') } })),
    http('Header', (secret) => ({ authType: 'custom_header', authConfig: { headerName: 'X-Auth', headerValue: secret('headerValue') } })),
    http('Mutual', (secret) => {
      const clientKey = secret('clientKey');
      return { tls: { clientKey, clientCertificate: certificateFor(clientKey, secret('clientCertificate')) } };
    }),
    http('Headers', (secret) => ({
      headers: { Authorization: `Bearer ${secret('headerValue')}`, 'X-Team': 'shop' },
      headerTemplates: { 'X-Order': '{{ payload.order.id }}' },
      forwardHeaders: ['X-Shop-Topic'],
    })),
    {
      path: '/cron',
      make: (secret) => ({ name: 'Canary', cronExpression: '0 0 1 1 *', url, headers: { 'X-Api-Key': secret('headerValue') } }),
    },
    store('s3', (secret) => ({
      bucket: 'events',
      region: 'eu-central-1',
      accessKeyId: 'AKIA',
      secretAccessKey: secret('secretAccessKey'),
    })),
    store('r2', (secret) => ({
      bucket: 'events',
      endpoint: 'https://r2.example',
      accessKeyId: 'AKIA',
      secretAccessKey: secret('secretAccessKey'),
    })),
    store('gcs', (secret) => ({ bucket: 'events', projectId: 'p', serviceAccountKey: secret('serviceAccountKey') })),
    store('azure_blob', (secret) => ({ accountName: 'acme', containerName: 'events', accountKey: secret('accountKey') })),
    { path: '/sources', make: (secret) => ({ name: 'Signed', provider: 'standard-webhooks', signingSecret: secret('signingSecret') }) },
    { path: '/sources', make: (secret) => ({ name: 'Asked', handshake: 'hub_challenge', verifyToken: secret('verifyToken') }) },
    channel('slack', (secret) => ({ webhookUrl: secret('webhookUrl') })),
    channel('teams', (secret) => ({ webhookUrl: secret('webhookUrl') })),
    channel('discord', (secret) => ({ webhookUrl: secret('webhookUrl').replace('hooks.slack.com/services', 'discord.com/api/webhooks') })),
    channel('pagerduty', (secret) => ({ routingKey: secret('routingKey'), severity: 'error' })),
    channel('webhook', (secret) => ({
      url: 'https://127.0.0.1:9/alerts',
      headers: { 'X-Team': secret('value') },
      secret: secret('secret'),
    })),
  ];

  function http(name: string, more: BodyWithSecrets['make']): BodyWithSecrets {
    return { path: '/destinations', make: (secret) => ({ name, url, ...more(secret) }) };
  }
  function store(type: string, config: BodyWithSecrets['make']): BodyWithSecrets {
    return { path: '/destinations', make: (secret) => ({ name: `Store ${type}`, type, config: config(secret) }) };
  }
  function channel(type: string, config: BodyWithSecrets['make']): BodyWithSecrets {
    return { path: '/notification-channels', make: (secret) => ({ name: `Channel ${type}`, type, config: config(secret) }) };
  }
}
