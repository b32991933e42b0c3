/**
 * Prefixes of header names that one product, or a family of them, uses toward the servers behind it: proxies, networks that deliver content, clouds,
 * service meshes, access gateways. `webhook-` and other prefixes of senders are none of them.
 */
const prefixes = [
  // The way of the request, and the address of the client.
  ...['x-forwarded', 'forwarded-', 'x-forward-for', 'x-forwarder-for', 'x-proxied-', 'x-proxy-user', 'x-proxy-email', 'x-proxy-remote-'],
  ...['x-original-', 'x-originating-', 'x-orig-', 'x-rewrite-', 'x-rewritten-', 'x-override-', 'x-http-method', 'x-http-destination'],
  ...['x-real-', 'x-replaced-', 'x-invoke-', 'x-custom-ip-', 'x-accel-', 'x-sendfile', 'x-lighttpd-', 'x-reproxy-', 'x-middleware-'],
  ...['x-nextjs-', 'x-ingress-', 'x-varnish-', 'z-forwarded-', 'x-imforwards'],
  // Networks that deliver content, and clouds.
  ...['fly-', 'x-fly-', 'cf-', 'cloudfront-', 'x-cloudfront-', 'x-amz-cf-', 'x-amzn-', 'akamai-', 'x-akamai-', 'fastly-', 'x-fastly-'],
  ...['x-azure-', 'x-fd-', 'x-msedge-', 'x-appgw-', 'x-appservice-', 'x-waws-', 'was-default-', 'x-arr-', 'x-vercel-'],
  ...[
    'x-nf-client-',
    'x-nf-account-',
    'x-appengine-',
    'x-gae-',
    'x-google-(?:apps-|internal-|real-|iap-|serverless-|backend|authenticated-|user-|client-|ip$)',
    'x-cloudtasks-',
    'x-cloudscheduler',
    'x-sigsci-',
  ],
  // Service meshes.
  ...['x-envoy-', 'x-ext-authz-', 'x-istio-', 'istio-', 'sec-istio-', 'l5d-', 'linkerd-', 'x-linkerd-', 'dapr-', 'x-consul-', 'x-osm-'],
  ...['kuma-', 'x-kuma-', 'x-cilium-', 'spiffe-', 'x-spiffe-', 'x-svid', 'x-workload-identity'],
  // Certificates and names of clients.
  ...['client-cert', 'x-client-cert', 'x-peer-', 'x-mtls-', 'x-tls-', 'x-ssl-', 'ssl-', 'x-sslclient', 'nginx-ssl-', 'x-nginx-', 'x509-'],
  ...['x-x509-', 'x-haproxy-', 'wl-proxy-', 'x-wl-'],
  // Identities.
  ...[
    'x-remote-',
    'remote-',
    'x-auth-',
    'auth-user',
    'auth-request-',
    'http-auth-',
    'authenticated-',
    'x-authenticated-',
    'x-authentication-',
  ],
  ...['x-authorization-', 'x-authorized-', 'x-authz-', 'x-authuser', 'x-authentik-', 'x-authelia-', 'x-vouch-', 'x-webauth-'],
  ...[
    'x-goog-iap-',
    'x-goog-authenticated-user-',
    'x-goog-user-',
    'x-ms-client-(?:principal|ip$|cert)',
    'x-ms-token-',
    'x-ms-proxy',
    'x-msproxy',
  ],
  ...['x-ms-forwarded-', 'x-ms-adfs-', 'x-pomerium-', 'tailscale-', 'x-tailscale-', 'x-teleport-', 'teleport-', 'x-consumer-'],
  ...[
    'x-credential-',
    'x-anonymous-(?:consumer|user)',
    'x-hasura-',
    'x-jwt-',
    'jwt-',
    'x-token-',
    'x-oidc-',
    'oidc-',
    'x-oauth-',
    'x-oauth2-',
  ],
  ...['x-saml-', 'saml-', 'x-sso-', 'sso-', 'mellon-', 'shib-', 'x-shib', 'sm-', 'smuser', 'siteminder-', 'x-siteminder-', 'iv-', 'x-iv-'],
  ...[
    'oam-',
    'cas-',
    'x-cas-',
    'kc-',
    'impersonate-',
    'x-impersonate-',
    'x-kong-',
    'x-hydra-',
    'x-kratos-',
    'x-grafana-(?:id$|org-)',
    'x-scope-',
  ],
];

/** Whole names. */
const names = [
  ...[
    'forwarded',
    'x-original',
    'cdn-loop',
    'front-end-https',
    'https',
    'x-https',
    'x-ssl',
    'x-scheme',
    'x-url-scheme',
    'x-proto',
    'x-protocol',
  ],
  ...[
    'x-host',
    'x-port',
    'x-method',
    'x-path',
    'x-uri',
    'x-url',
    'x-server-name',
    'x-backend',
    'http-host',
    'disguised-host',
    'x-ip',
    'x-client',
  ],
  ...[
    'x-cert',
    'x-certificate',
    'userinfo',
    'user-id',
    'eppn',
    'x-sub',
    'x-uid',
    'x-on-behalf-of',
    'sudo',
    'x-act-as',
    'x-run-as',
    'x-as-user',
  ],
  // A server of CGI hands it on as `HTTP_PROXY`.
  'proxy',
];

/** Ends of names, after any prefix. */
const endings = [
  // Where a client is, or seems to be.
  '(?:client|real|connecting|remote|source|src|origin|originating|viewer|visitor|peer|user|true|trusted|forwarded|proxyuser)-?(?:ip|ipv4|ipv6|addr|address)',
  '(?:client|connecting)-(?:host|port)',
  'ip-address|ipaddress|realip|sourceip',
  // Which URL, host and method are meant.
  '(?:http-)?(?:method|url|uri|host|path)-override',
  '(?:base|external|matched|script)-(?:url|uri|path|name)',
  'path-info',
  '(?:backend|upstream|destination)-host',
  // Proven identities of clients.
  '(?:client|user|peer)-?(?:cert|certificate|dn|cn|san|subject|verify)',
  'spiffe-id|svid',
];

/** Names of users and of their rights, where no word ties them to an event. */
const identity = new RegExp(
  [
    '-(?:user|username|userid|userinfo|authuser|login|principal|identity|userprincipalname)$',
    '-user-(?:claims|context|email|groups?|id|info|login|mail|name|permissions|principal|roles?|scopes?|sub|subject|uid)$',
    '^x-(?:admin|internal|trusted|sudo|is-admin|is-internal|is-authenticated)(?:-|$)',
    '^x-(?:email|groups?|roles?|scopes?|permissions|entitlements|capabilities|member-of)$',
    '^x-principal',
    '^(?:x-)?request(?:ed)?-(?:url|uri|host|method|path|scheme)$',
    '-claims(?:-|$)',
    '-claim-(?:aud|email|groups?|iss|name|preferred|roles?|scopes?|sub)(?:-|$)',
  ].join('|'),
);
/** Words of names that belong to an event or prove it: `x-webhook-user`, `ce-subject`. */
const ofEvent = /^ce-|(?:^|-)(?:event|events|hook|hooks|webhook|webhooks|signature|signatures|hmac|delivery|topic)(?:-|$)/;

const always = new RegExp(
  [
    ...prefixes.map((prefix) => `^${prefix}`),
    ...names.map((name) => `^${name}$`),
    ...endings.map((ending) => `(?:^|-)(?:${ending})$`),
  ].join('|'),
);
/** Signature headers. The receiver verifies them, so they need no trusted proxy: `x-vercel-signature`, `x-plivo-signature-v3-nonce`. */
const signature = /(?:^|-)signature(?:-(?:sha)?[0-9]+|-v[0-9]+|-ed25519|-jwt|-nonce|-timestamp){0,2}$/;
/** Names of a message, a request or a trace are not trusted claims: `x-amzn-trace-id`, `x-original-message-id`. Not where any name may be a claim. */
const identifies =
  /^(?:x-)?(?:amzn|google|azure|akamai|fastly|fly|kong|vercel|cf|original)-(?:.*-)?(?:event|message|delivery|webhook|hook|tracking|correlation|trace|request|operation)-?(?:id|type|time|timestamp)$/;
/** A forwarding proxy of any product describes the original request. */
const forwarded = /(?:^|-)forwarded-(?:for|host|proto|port|user|email|groups|uri|client|tls|ssl|prefix|path|method|server|scheme)(?:-|$)/;

/**
 * Whether receivers believe a header with this name, because a proxy, an access gateway or a service mesh of theirs sets it: who the client is, what it has
 * proved, which URL and method are meant. From a sender they would believe it, too. `name`: lower case, `-` as the only separator.
 */
export function isTrustedHeader(name: string): boolean {
  if (signature.test(name) || identifies.test(name)) return false;
  return always.test(name) || forwarded.test(name) || (identity.test(name) && !ofEvent.test(name));
}
