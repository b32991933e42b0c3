import { isCredentialHeader } from './credential-names.ts';
import { ofKnownNames } from './known-names.ts';

const plain = /^[a-z0-9-]*$/;
const separators = /[^a-z0-9]/g;

/**
 * Headers that receivers believe because a proxy, an access gateway or a service mesh of theirs sets them: who the client is, what it has proved, which URL
 * and method are meant. From a sender they would be believed, too.
 */
const trusted = new RegExp(
  [
    // The way of the request, and the address of the client.
    'forwarded$',
    'x-forwarded',
    'x-original-',
    'x-rewrite-',
    'x-override-',
    'x-http-method',
    'x-method-override$',
    'x-http-path-override$',
    'x-real-',
    '(?:x-)?client-ip$',
    '(?:x-)?clientip$',
    'x-cluster-client-ip$',
    'true-client-ip$',
    'fastly-client-ip$',
    '(?:x-)?fly-',
    'x-azure-',
    'x-fd-',
    'x-vercel-',
    'x-nf-client-',
    'x-proxyuser-ip$',
    'x-envoy-',
    'x-appengine-',
    'x-arr-',
    'cf-',
    'cdn-loop$',
    'do-connecting-ip$',
    'x-host$',
    'x-proto$',
    'x-scheme$',
    'x-url-scheme$',
    'front-end-https$',
    '(?:x-)?script-name$',
    'x-accel-',
    'x-sendfile',
    'x-middleware-',
    'x-nextjs-',
    // A server of CGI hands it on as `HTTP_PROXY`.
    'proxy$',
    // Certificates and names of clients.
    'x-client-(?:cert|dn$|verify$)',
    'client-cert',
    'x-peer-',
    'x-mtls-',
    'x-tls-',
    'x-ssl-',
    'ssl-',
    'x-nginx-ssl-',
    'x-spiffe-',
    'l5d-',
    'dapr-',
    // Identities.
    'x-remote-',
    'remote-',
    'x-auth-',
    'x-authenticated-',
    'x-authentik-',
    'x-authelia-',
    'x-vouch-',
    'x-webauth-',
    'x-amzn-',
    'x-goog-iap-',
    'x-goog-authenticated-user-',
    'x-ms-client-principal',
    'x-ms-token-aad-',
    'x-pomerium-',
    '(?:x-)?tailscale-',
    'x-consumer-',
    'x-credential-identifier$',
    'x-anonymous-consumer$',
    'x-hasura-',
    'x-apigateway-api-userinfo$',
    'x-endpoint-api-userinfo$',
    'x-userinfo$',
    'x-jwt-',
    '(?:x-)?impersonate-',
    'oidc-',
    'mellon-',
    'shib-',
    'eppn$',
    'x-user$',
    'x-user-(?:email|groups?|id|login|name|roles?)$',
    'x-username$',
    'x-email$',
    'x-groups?$',
    'x-roles?$',
    'x-scopes?$',
    'x-principal',
    'x-on-behalf-of$',
  ]
    .map((name) => `^${name}`)
    .join('|'),
);

/**
 * Whether a header of a sender with this name is stored, shown and forwarded: it carries no credential, and receivers do not believe it of a proxy. Any case.
 * `_` and `.` count as `-`.
 */
export const isKeptHeader = ofKnownNames((rawName) => {
  const name = asReceiversRead(rawName.toLowerCase());
  return !trusted.test(name) && !isCredentialHeader(name);
});

/** The headers of an event that an earlier release has stored, less those that are not kept any more; the same array where all are. */
export function keptHeaders(headers: [name: string, value: string][]): [name: string, value: string][] {
  return headers.every(([name]) => isKeptHeader(name)) ? headers : headers.filter(([name]) => isKeptHeader(name));
}

/** The name with `-` for each other separator: CGI, WSGI and PHP do not tell `-`, `_` and `.` apart, so that `x_forwarded_user` is believed as well. */
export function asReceiversRead(name: string): string {
  return plain.test(name) ? name : name.replaceAll(separators, '-');
}
